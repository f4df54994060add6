#!/usr/bin/env bash
# hpcc.sh: RandomAccess of HPCC, the program of its authors, with two ranks of Open MPI and in one process.
# HPCC runs all of its benchmarks, and sizes the table by the matrix of the first: one of 4,096 columns gives 2^24
# entries in all. It writes into a file, of which this prints two figures.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Each line: the value, then what HPCC calls it.
cat >hpccinf.txt <<'INPUT'
HPLinpack benchmark input file
RandomAccess of HPCC
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
4096         Ns
1            # of NBs
80           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
INPUT
mpirun.openmpi --allow-run-as-root --bind-to core -n 2 hpcc >&2
awk -F= '
    $1 == "MPIRandomAccess_GUPs" { printf "measured updates_million %.6f\n", 1000 * $2 }
    $1 == "SingleRandomAccess_GUPs" { printf "measured process_updates_million %.6f\n", 1000 * $2 }
    $1 == "VersionMajor" { major = $2 }
    $1 == "VersionMinor" { minor = $2 }
    $1 == "VersionMicro" { printf "version hpcc %d.%d.%d\n", major, minor, $2 }
' hpccoutf.txt
