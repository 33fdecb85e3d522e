/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * Gaps after waits: what records written with gap=1 hold besides (an addition to record.h; readers
 * that do not know it see sites without calls). */
#ifndef HOSTWAIT_RECORD_GAPS_H
#define HOSTWAIT_RECORD_GAPS_H

/* A flag of hostwait_record_site. The site holds no calls: how long the thread queued nothing after
 * the calls of the site that is the same but for this flag. Of its counters total_ns, max_ns and
 * the histogram are of these gaps; calls is 0. */
enum { HOSTWAIT_SITE_GAP = 1u << 3 };

#endif /* HOSTWAIT_RECORD_GAPS_H */
