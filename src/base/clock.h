/* clock.h: a monotonic clock in seconds. */
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

double st_clock_seconds(void);

#endif
