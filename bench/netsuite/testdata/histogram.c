// Reads numbers and prints the percentiles that the client would report.
#include <inttypes.h>
#include <stdio.h>

#include "histogram.h"

static struct histogram h;

int main(void) {
	uint64_t value;
	while (scanf("%" SCNu64, &value) == 1)
		histogram_add(&h, value);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", h.count, histogram_at(&h, 0.5), histogram_at(&h, 0.99), histogram_at(&h, 0.999), h.max);
	return 0;
}
