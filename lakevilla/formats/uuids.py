"""Ids as formats spell them."""


def dashed(digits: str) -> str:
    """32 hexadecimal digits as a UUID is written."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
