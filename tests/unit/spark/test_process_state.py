"""Keys and values on their way to Spark's state: sent quickly, and as PySpark itself would send them."""

from datetime import UTC, datetime

import numpy as np
import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from weirflow.spark.process.state import SparkHost


class Client(StatefulProcessorApiClient):
    """Without a server: nothing is sent."""

    def __init__(self):
        self.pickleSer = CPickleSerializer()
        self.slow = 0

    def _serialize_to_bytes(self, schema, data):
        self.slow += 1
        return super()._serialize_to_bytes(schema, data)


@pytest.mark.parametrize(
    ("types", "data", "slow"),
    [
        ([LongType(), StringType(), BinaryType(), DoubleType(), BooleanType()], (1, "a", b"\x00", 0.5, True), 0),
        ([LongType(), StringType()], [2**40, None], 0),
        ([LongType()], (np.int64(7),), 1),
        ([TimestampType()], (datetime(2026, 1, 1, tzinfo=UTC),), 1),
    ],
)
def test_what_is_sent_is_what_pyspark_sends(types, data, slow):
    client = Client()
    schema = StructType([StructField(f"c{at}", one) for at, one in enumerate(types)])
    expected = client._serialize_to_bytes(schema, data)
    client.slow = 0
    SparkHost(StatefulProcessorHandle(client), removes_expired=False)
    assert client._serialize_to_bytes(schema, data) == expected
    assert client.slow == slow
