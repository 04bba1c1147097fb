"""The S3 server of the tests is the one of the benchmarks."""

from bench.seaweed import ACCESS_KEY, SECRET_KEY, S3Server, running_server

__all__ = ["ACCESS_KEY", "SECRET_KEY", "S3Server", "running_server"]
