#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "sim/cluster.h"

/* The bad days: faults that come at random times, last for a while, and end. */
typedef struct sim_faults {
  sim_world *world;
  sim_cluster *cluster;
  int64_t between_us; /* the longest time from one fault to the next */
  bool over;          /* no new ones */
  uint64_t count;
} sim_faults;

void sim_faults_start(sim_faults *faults, sim_world *world, sim_cluster *cluster,
                      int64_t between_us);

/* Ends all faults for good: the world is as it was made. */
void sim_faults_heal(sim_faults *faults);

#endif
