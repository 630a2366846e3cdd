"""Many questions of one file, answered in chunks by processes, by shards of a queue or by a Dask cluster, into Parquet datasets.

Holds        questions and verb (the verb `sweep`), function (`hw.sweep`); file (FILE.toml as blocks of questions), grid (which question
             stands where), check (wrong values, before anything runs); chunks (time and size of chunks), manifest (what a folder was
             made of), lock (one client a folder), sweeping (a study on its way into its folder); run (chunks through an executor of
             concurrent.futures), pool and dask_cluster (its two kinds), worker (what one chunk asks), travel (files of the user's on
             other machines); columns (rows as one Arrow table), store (parts, one schema, the hash of all rows). Its modules load at
             first use.
Import       function.sweep.
May import   answers, report, training, performance, models, core. Its users: none (`QUESTIONS` of the root names its verb).
Reads        -
"""

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
