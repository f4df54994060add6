/* A fence on all processors, which a bare core does not have. */
#ifndef _LINUX_MEMBARRIER_H
#define _LINUX_MEMBARRIER_H

#define MEMBARRIER_CMD_GLOBAL_EXPEDITED 2
#define MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED 4

#endif
