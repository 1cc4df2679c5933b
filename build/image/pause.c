// What a container becomes that has done its work and must not be started again: it waits until its pod ends.
#include <signal.h>
#include <unistd.h>

static void end(int signal) { _exit(0 * signal); }

int main(void) {
  // As the first process of its container it has no default for them.
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (;;) pause();
}
