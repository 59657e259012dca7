"""What a streaming query is made of, read from the text of its plan."""

from weirflow.spark.streaming.plan import QueryShape, shape_of

WINDOWED = """\
== Analyzed Logical Plan ==
window: struct<start:timestamp,end:timestamp>, n: bigint
~Aggregate [window#15-T60000ms, k#1], [window#15-T60000ms, count(1) AS n#9L]
+- ~Project [named_struct(start, 1) AS window#15-T60000ms, v#5, at#6-T60000ms]
   +- ~Join Inner, (a = b)
      :- ~EventTimeWatermark 9bc6623b, at#6: timestamp, 1 minutes
      :  +- ~StreamingRelation DataSource(org.apache.SparkSession@6ee8868,parquet,List(),None), FileSource[/in], [v#5]
      +- Sort [b ASC]
         +- Aggregate [b#1], [b#1]

== Optimized Logical Plan ==
~Sort [x#1]
+- ~StreamingRelationV2 org.apache.X@1, socket, Y@2, [a=b], [value#1]
"""


def test_only_what_streams_counts():
    assert shape_of(WINDOWED) == QueryShape(
        sources=("parquet",),
        operators=frozenset({"Aggregate", "Project", "Join", "EventTimeWatermark", "StreamingRelation"}),
        aggregations=1,
        final_groups=True,
    )


def test_groups_without_a_time_are_not_final():
    plan = (
        "~Aggregate [k#1], [k#1, max(at#2-T5ms) AS m#3]\n"
        "+- ~StreamingRelationV2 org.apache.spark.RateStreamProvider@1, rate, org.apache.Table@2, [a=b], [value#1]"
    )
    assert shape_of(plan) == QueryShape(
        ("rate",), frozenset({"Aggregate", "StreamingRelationV2"}), 1, final_groups=False
    )


def test_an_aggregation_of_everything_is_not_final():
    assert not shape_of("~Aggregate [count(1) AS count#313L]\n+- ~StreamingRelationV2 a, rate, b").final_groups


def test_text_inside_a_literal_is_no_operator():
    assert shape_of("~Project [a\n~ Sort AS x#1]\n+- ~StreamingRelationV2 a@1, kafka, b, c").operators == {
        "Project",
        "StreamingRelationV2",
    }
