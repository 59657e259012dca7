"""Plans that Spark's analyzer resolved, read into the plans of views.

Spark has parsed the text, found the tables and columns, chosen the functions and written out every cast. What is left
is to say the same in the operators and functions of ``weirflow.sql``, or to refuse: a field that nobody read may mean
anything, so a node with one is not taken.
"""
