// Package mpi is a [collective.Group] of processes that mpirun or srun started, with Open MPI or MPICH. The library is loaded at
// run time: no C compiler and no cgo.
//
// The library is called by one goroutine at a time (MPI_THREAD_SERIALIZED): by callers while they wait, and every few
// milliseconds by another goroutine while they compute and a message is on its way. Only point-to-point messages are used. A
// long sum is divided: every process adds up its part of the values of all others in the order of the ranks, and sends the
// result to all. A short one, and one of two processes, is exchanged and added up by everyone. MPI_Allreduce promises neither
// equal bits on all processes nor an order; here a sum has the bits of [collective.Local] with every library, version and
// network.
//
// Two things end a wait: a deadline, after which the processes that did not answer are named ([Lost]), and a message of a
// process that failed, with its exit code and error ([Failed]). See [Group.Fail] for how all processes end together.
package mpi
