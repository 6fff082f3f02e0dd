/* Runs the threads of a kernel's blocks on the CPU, one after the other; `compiled_kernels.py` compiles this file. */
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_SIZE = 1 << 16 };

typedef void (*Kernel)(void *arguments);

static Kernel kernel;
static void *arguments;
static int thread, num_threads, block;
static ucontext_t scheduler, *contexts;
static char *has_ended;
static int misaligned;

/* What kernels call. */

int thread_index(void) { return thread; }
int block_index(void) { return block; }
int block_size(void) { return num_threads; }
void wait_for_block(void) { swapcontext(&contexts[thread], &scheduler); }

/* Notes an address that is not a multiple of the size of the number there, which is an error on a GPU. */
void check_address(void *address, int size) { misaligned |= (size_t)address % size != 0; }

/* Returns whether the last kernel used such an address. */
int has_misaligned(void) { return misaligned; }

/* Runs a kernel whose threads do not wait for each other. */
void run_threads(Kernel chosen, void *given, int num_blocks, int block_threads) {
    misaligned = 0, num_threads = block_threads;
    for (block = 0; block < num_blocks; block++)
        for (thread = 0; thread < num_threads; thread++) chosen(given);
}

static void run_thread(void) {
    kernel(arguments);
    has_ended[thread] = 1;
}

static void start_thread(int index, char *stack) {
    ucontext_t *context = &contexts[index];
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_SIZE;
    context->uc_link = &scheduler;
    makecontext(context, run_thread, 0);
    has_ended[index] = 0;
}

/* Lets each thread run to its next barrier or its end, in odd blocks the last thread first. Returns how many ended. */
static int run_to_barrier(void) {
    int ended = 0;
    for (int turn = 0; turn < num_threads; turn++) {
        thread = block % 2 ? num_threads - 1 - turn : turn;
        swapcontext(&scheduler, &contexts[thread]);
        ended += has_ended[thread];
    }
    return ended;
}

/* Runs a kernel whose threads wait for each other. Returns 0, or 1 if only some threads of a block reached a barrier. */
int run_blocks(Kernel chosen, void *given, int num_blocks, int block_threads, void *shared, int shared_size) {
    int ended = 0;
    misaligned = 0, kernel = chosen, arguments = given, num_threads = block_threads;
    contexts = calloc(num_threads, sizeof *contexts);
    has_ended = calloc(num_threads, 1);
    char *stacks = malloc((size_t)num_threads * STACK_SIZE);
    for (block = 0; block < num_blocks && (block == 0 || ended == num_threads); block++) {
        if (shared) memset(shared, 0xA5, shared_size); /* undefined on a GPU */
        for (int index = 0; index < num_threads; index++) start_thread(index, stacks + (size_t)index * STACK_SIZE);
        do ended = run_to_barrier();
        while (ended == 0);
    }
    free(stacks), free(contexts), free(has_ended);
    return ended != num_threads;
}
