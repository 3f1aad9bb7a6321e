/* A libnvidia-ml.so.1 without GPUs: it answers from a file of `key=value` lines, named by $FAKE_NVML.
 *
 * The file is read again whenever it has changed, so a test can break a GPU while an agent watches. A key is looked up
 * for the GPU first (`gpu3.ecc_uncorrected=2`) and then for all of them (`ecc_uncorrected=2`):
 *
 *   gpus=8                 how many, at most 16              node=1             told apart in the UUIDs
 *   driver=570.133.20      cuda=12080                        driver_loaded=0    as if the kernel module were missing
 *   hang=1                 counting GPUs never returns       crash=1            counting GPUs kills the process
 *   name= mem= cc_major= cc_minor= bus= uuid=                what a GPU is
 *   lost=1                 fallen off the bus                reset_required=1   answers nothing until it is reset
 *   ecc_uncorrected=N      remap_pending=1 remap_failure=1   health
 *   temp= power= util= used=                                 what telemetry reads
 *   procs=PID:BYTES,...    compute processes
 *   numa=0,0,1,1           NUMA node of each GPU, else the first half is on 0 and the rest on 1
 *   nvlink=full|pairs|quads|none                             who is linked with whom
 *   mig=1 mig_devices=N    MIG mode, and how many devices there are; `gpu0.mig2.procs=` as above
 *   mig_profiles=A,B,...   what they are, else all are 1g.10gb
 *   unsupported=a,b        optional calls that answer "not supported": ecc remap mig numa p2p nvlink procs events
 *   xid=79 xid_seq=N       raising the sequence number raises the Xid, on instance xid_gi if that is given
 *
 * Compiled with -DOLD_DRIVER the symbols that came after the 450 drivers are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_GPUS = 16, SLICES = 7, MAX_PROCESSES = 64, MAX_LINES = 4096, TEXT = 160 };

/* nvmlReturn_t */
typedef enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
} Return;

static const unsigned NO_INSTANCE = 0xFFFFFFFF;
static const unsigned long long XID_EVENT = 0x8;

/* ---- structures of nvml.h ---- */

typedef struct {
    unsigned long long total, free, used;
} Memory;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} MemoryV2;

typedef struct {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} Process;

typedef struct {
    char legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
} Pci;

typedef struct {
    unsigned gpu, memory;
} Utilization;

/* What an nvmlDevice_t points to: a GPU (slice -1) or one of its MIG devices. */
typedef struct {
    int gpu, slice;
} Device;

typedef struct {
    Device *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} Event;

typedef struct {
    int watched[MAX_GPUS];
    long long seen[MAX_GPUS];
} EventSet;

static Device gpus[MAX_GPUS];
static Device slices[MAX_GPUS][SLICES];
static int initialized;

/* ---- the file ---- */

static struct {
    char key[TEXT], value[TEXT];
} lines[MAX_LINES];
static int line_count;
static struct stat read_as;

static int unchanged(const struct stat *now) {
    return now->st_ino == read_as.st_ino && now->st_size == read_as.st_size &&
           now->st_mtim.tv_sec == read_as.st_mtim.tv_sec && now->st_mtim.tv_nsec == read_as.st_mtim.tv_nsec;
}

static void read_file(FILE *file) {
    char line[2 * TEXT];
    line_count = 0;
    while (line_count < MAX_LINES && fgets(line, sizeof line, file)) {
        char *equals = strchr(line, '=');
        if (line[0] == '#' || !equals) continue;
        *equals = 0;
        equals[1 + strcspn(equals + 1, "\r\n")] = 0;
        snprintf(lines[line_count].key, TEXT, "%.*s", TEXT - 1, line);
        snprintf(lines[line_count].value, TEXT, "%.*s", TEXT - 1, equals + 1);
        line_count++;
    }
}

static void refresh(void) {
    const char *path = getenv("FAKE_NVML");
    struct stat now;
    if (!path || stat(path, &now) || unchanged(&now)) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    read_file(file);
    fclose(file);
    read_as = now;
}

static const char *line_for(const char *key) {
    for (int i = line_count - 1; i >= 0; i--)
        if (!strcmp(lines[i].key, key)) return lines[i].value;
    return NULL;
}

/* The value for one GPU (or for none of them: gpu -1), else for all, else the fallback. */
static const char *text(int gpu, const char *key, const char *fallback) {
    char own[TEXT];
    const char *found = NULL;
    refresh();
    snprintf(own, sizeof own, "gpu%d.%s", gpu, key);
    if (gpu >= 0) found = line_for(own);
    if (!found) found = line_for(key);
    return found ? found : fallback;
}

static long long number(int gpu, const char *key, long long fallback) {
    const char *found = text(gpu, key, NULL);
    return found ? strtoll(found, NULL, 0) : fallback;
}

static int listed(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, word, length) && (at[length] == ',' || !at[length])) return 1;
    return 0;
}

static int supported(int gpu, const char *feature) { return !listed(text(gpu, "unsupported", ""), feature); }

static int gpu_count(void) {
    long long wanted = number(-1, "gpus", 8);
    return wanted > MAX_GPUS ? MAX_GPUS : (int)wanted;
}

/* ---- devices ---- */

static Return alive(int gpu) {
    if (number(gpu, "lost", 0)) return GPU_IS_LOST;
    return SUCCESS;
}

static Return valid(const Device *device) {
    if (!initialized) return UNINITIALIZED;
    if (!device) return INVALID_ARGUMENT;
    return alive(device->gpu);
}

/* Every call on a device begins with this. */
#define CHECK(device)                            \
    do {                                         \
        Return state = valid(device);            \
        if (state != SUCCESS) return state;      \
    } while (0)

#define OPTIONAL(device, feature)                                            \
    do {                                                                     \
        CHECK(device);                                                       \
        if (!supported((device)->gpu, feature)) return NOT_SUPPORTED;        \
        if (number((device)->gpu, "reset_required", 0)) return RESET_REQUIRED; \
    } while (0)

/* MIG numbers GPU instances as it likes; here they begin at 7. */
static unsigned instance_of(const Device *device) {
    return device->slice < 0 ? NO_INSTANCE : (unsigned)device->slice + 7;
}

static void gpu_uuid(int gpu, char *buffer, unsigned size) {
    char made[TEXT];
    snprintf(made, sizeof made, "GPU-%08llx-0000-0000-0000-%012x", number(-1, "node", 1), gpu);
    snprintf(buffer, size, "%s", text(gpu, "uuid", made));
}

/* The profile of a MIG device; it ends at a comma, or with the text. */
static const char *profile_of(const Device *device) {
    const char *at = text(device->gpu, "mig_profiles", NULL);
    for (int i = 0; i < device->slice && at; i++) at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    return at ? at : "1g.10gb";
}

static int profile_length(const Device *device) { return (int)strcspn(profile_of(device), ","); }

static long long memory_total(const Device *device) {
    long long whole = number(device->gpu, "mem", 85520809984LL);
    if (device->slice < 0) return whole;
    const char *gigabytes = text(device->gpu, "mig_profiles", NULL) ? strstr(profile_of(device), "g.") : NULL;
    return gigabytes ? strtoll(gigabytes + 2, NULL, 10) << 30 : whole / (SLICES + 1);
}

static void fill_pci(int gpu, Pci *pci) {
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)number(gpu, "bus", 0x18 + gpu * 0x10);
    pci->device_id = 0x233010DE;
    snprintf(pci->legacy_id, sizeof pci->legacy_id, "0000:%02X:00.0", pci->bus & 0xFF);
    snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus & 0xFF);
}

/* Reads `PID:BYTES,PID:BYTES` into at most `room` entries; the answer is how many there are. */
static unsigned processes_on(const Device *device, Process *found, unsigned room) {
    char key[TEXT] = "procs";
    unsigned count = 0;
    if (device->slice >= 0) snprintf(key, sizeof key, "mig%d.procs", device->slice);
    const char *at = text(device->gpu, key, "");
    while (*at) {
        char *end;
        Process process = {.gpu_instance = instance_of(device), .compute_instance = NO_INSTANCE};
        process.pid = (unsigned)strtoul(at, &end, 10);
        if (*end == ':') process.memory = strtoull(end + 1, &end, 0);
        if (found && count < room) found[count] = process;
        count++;
        at = *end == ',' ? end + 1 : "";
    }
    return count;
}

static unsigned long long memory_used(const Device *device) {
    Process processes[MAX_PROCESSES];
    unsigned count = processes_on(device, processes, MAX_PROCESSES);
    unsigned long long used = (unsigned long long)number(device->gpu, "used", 512LL << 20);
    for (unsigned i = 0; i < count && i < MAX_PROCESSES; i++) used += processes[i].memory;
    return used;
}

static int linked(int one, int other) {
    const char *shape = text(-1, "nvlink", "full");
    if (one == other) return 0;
    if (!strcmp(shape, "full")) return 1;
    if (!strcmp(shape, "pairs")) return one / 2 == other / 2;
    if (!strcmp(shape, "quads")) return one / 4 == other / 4;
    return 0;
}

/* The GPU at the far end of a link, or -1: each link goes to another peer. */
static int far_end(int gpu, unsigned link) {
    for (int other = 0; other < gpu_count(); other++)
        if (linked(gpu, other) && link-- == 0) return other;
    return -1;
}

/* ---- the library: start and system ---- */

Return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (number(-1, "driver_loaded", 1) == 0) return DRIVER_NOT_LOADED;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {
        gpus[gpu] = (Device){.gpu = gpu, .slice = -1};
        for (int slice = 0; slice < SLICES; slice++) slices[gpu][slice] = (Device){.gpu = gpu, .slice = slice};
    }
    initialized++;
    return SUCCESS;
}

Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

Return nvmlShutdown(void) {
    if (!initialized) return UNINITIALIZED;
    initialized--;
    return SUCCESS;
}

const char *nvmlErrorString(Return code) {
    switch (code) {
        case SUCCESS: return "Success";
        case UNINITIALIZED: return "Uninitialized";
        case INVALID_ARGUMENT: return "Invalid Argument";
        case NOT_SUPPORTED: return "Not Supported";
        case NOT_FOUND: return "Not Found";
        case INSUFFICIENT_SIZE: return "Insufficient Size";
        case DRIVER_NOT_LOADED: return "Driver Not Loaded";
        case TIMEOUT: return "Timeout";
        case GPU_IS_LOST: return "GPU is lost";
        case RESET_REQUIRED: return "GPU requires reset";
    }
    return "Unknown Error";
}

Return nvmlSystemGetDriverVersion(char *buffer, unsigned size) {
    snprintf(buffer, size, "%s", text(-1, "driver", "570.133.20"));
    return SUCCESS;
}

Return nvmlSystemGetNVMLVersion(char *buffer, unsigned size) {
    snprintf(buffer, size, "12.%s", text(-1, "driver", "570.133.20"));
    return SUCCESS;
}

Return nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = (int)number(-1, "cuda", 12080);
    return SUCCESS;
}

/* ---- the library: which GPUs there are ---- */

Return nvmlDeviceGetCount_v2(unsigned *count) {
    if (!initialized) return UNINITIALIZED;
    while (number(-1, "hang", 0)) sleep(3600);
    if (number(-1, "crash", 0)) abort();
    *count = (unsigned)gpu_count();
    return SUCCESS;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    if (!initialized) return UNINITIALIZED;
    if ((int)index >= gpu_count()) return INVALID_ARGUMENT;
    *device = &gpus[index];
    return alive((int)index);
}

Return nvmlDeviceGetHandleByUUID(const char *uuid, Device **device) {
    if (!initialized) return UNINITIALIZED;
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        char own[TEXT];
        gpu_uuid(gpu, own, sizeof own);
        *device = &gpus[gpu];
        if (!strcmp(own, uuid)) return alive(gpu);
    }
    return NOT_FOUND;
}

Return nvmlDeviceGetIndex(Device *device, unsigned *index) {
    CHECK(device);
    *index = (unsigned)(device->slice < 0 ? device->gpu : device->slice);
    return SUCCESS;
}

Return nvmlDeviceGetUUID(Device *device, char *buffer, unsigned size) {
    CHECK(device);
    if (device->slice < 0)
        gpu_uuid(device->gpu, buffer, size);
    else
        snprintf(buffer, size, "MIG-%08llx-0000-0000-%04x-%012x", number(-1, "node", 1), device->slice, device->gpu);
    return SUCCESS;
}

Return nvmlDeviceGetName(Device *device, char *buffer, unsigned size) {
    CHECK(device);
    const char *name = text(device->gpu, "name", "NVIDIA H100 80GB HBM3");
    if (device->slice < 0)
        snprintf(buffer, size, "%s", name);
    else
        snprintf(buffer, size, "%s MIG %.*s", name, profile_length(device), profile_of(device));
    return SUCCESS;
}

Return nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
    CHECK(device);
    if (device->slice >= 0) return NOT_SUPPORTED;
    fill_pci(device->gpu, pci);
    return SUCCESS;
}

Return nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    CHECK(device);
    *major = (int)number(device->gpu, "cc_major", 9);
    *minor = (int)number(device->gpu, "cc_minor", 0);
    return SUCCESS;
}

/* ---- the library: what is on them ---- */

Return nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
    CHECK(device);
    memory->total = (unsigned long long)memory_total(device);
    memory->used = memory_used(device);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

static Return list_processes(Device *device, unsigned *count, Process *processes) {
    OPTIONAL(device, "procs");
    unsigned room = processes ? *count : 0;
    *count = processes_on(device, processes, room);
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

Return nvmlDeviceGetComputeRunningProcesses_v2(Device *device, unsigned *count, Process *processes) {
    return list_processes(device, count, processes);
}

Return nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    CHECK(device);
    *celsius = (unsigned)number(device->gpu, "temp", 35 + device->gpu);
    return SUCCESS;
}

Return nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) {
    CHECK(device);
    *milliwatts = (unsigned)number(device->gpu, "power", 70000);
    return SUCCESS;
}

Return nvmlDeviceGetEnforcedPowerLimit(Device *device, unsigned *milliwatts) {
    CHECK(device);
    *milliwatts = (unsigned)number(device->gpu, "power_limit", 700000);
    return SUCCESS;
}

Return nvmlDeviceGetUtilizationRates(Device *device, Utilization *percent) {
    CHECK(device);
    percent->gpu = (unsigned)number(device->gpu, "util", 0);
    percent->memory = percent->gpu / 2;
    return SUCCESS;
}

/* ---- the library: health ---- */

Return nvmlDeviceGetTotalEccErrors(Device *device, unsigned kind, unsigned counter, unsigned long long *count) {
    (void)counter;
    OPTIONAL(device, "ecc");
    *count = (unsigned long long)number(device->gpu, kind ? "ecc_uncorrected" : "ecc_corrected", 0);
    return SUCCESS;
}

/* ---- the library: where they are and how they are linked ---- */

Return nvmlDeviceGetP2PStatus(Device *one, Device *other, unsigned capability, unsigned *status) {
    enum { NVLINK = 2, OK = 0, NO = 5 };
    OPTIONAL(one, "p2p");
    CHECK(other);
    *status = capability != NVLINK || linked(one->gpu, other->gpu) ? OK : NO;
    return SUCCESS;
}

Return nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *active) {
    OPTIONAL(device, "nvlink");
    if (far_end(device->gpu, link) < 0) return INVALID_ARGUMENT;
    *active = 1;
    return SUCCESS;
}

Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *pci) {
    OPTIONAL(device, "nvlink");
    int other = far_end(device->gpu, link);
    if (other < 0) return INVALID_ARGUMENT;
    fill_pci(other, pci);
    return SUCCESS;
}

/* ---- the library: what came after the 450 drivers ---- */

#ifndef OLD_DRIVER

Return nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *memory) {
    CHECK(device);
    memory->total = (unsigned long long)memory_total(device);
    memory->reserved = 600LL << 20;
    memory->used = memory_used(device);
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *processes) {
    return list_processes(device, count, processes);
}

Return nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                 unsigned *failure) {
    OPTIONAL(device, "remap");
    *corrected = 0;
    *uncorrected = (unsigned)number(device->gpu, "remapped", 0);
    *pending = (unsigned)number(device->gpu, "remap_pending", 0);
    *failure = (unsigned)number(device->gpu, "remap_failure", 0);
    return SUCCESS;
}

static int mig_on(int gpu) { return supported(gpu, "mig") && number(gpu, "mig", 0) > 0; }

static int slice_count(int gpu) {
    long long made = mig_on(gpu) ? number(gpu, "mig_devices", 0) : 0;
    return made > SLICES ? SLICES : (int)made;
}

Return nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    OPTIONAL(device, "mig");
    *current = *pending = mig_on(device->gpu);
    return SUCCESS;
}

Return nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) {
    OPTIONAL(device, "mig");
    *count = SLICES;
    return SUCCESS;
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **slice) {
    OPTIONAL(device, "mig");
    if ((int)index >= slice_count(device->gpu)) return NOT_FOUND;
    *slice = &slices[device->gpu][index];
    return SUCCESS;
}

Return nvmlDeviceGetGpuInstanceId(Device *device, unsigned *id) {
    OPTIONAL(device, "mig");
    if (device->slice < 0) return NOT_SUPPORTED;
    *id = instance_of(device);
    return SUCCESS;
}

static int numa_node(int gpu) {
    const char *at = text(-1, "numa", NULL);
    if (!at) return gpu < (gpu_count() + 1) / 2 ? 0 : 1;
    for (int i = 0; i < gpu && at; i++) at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    return at ? atoi(at) : 0;
}

Return nvmlDeviceGetMemoryAffinity(Device *device, unsigned size, unsigned long *nodes, unsigned scope) {
    (void)scope;
    OPTIONAL(device, "numa");
    memset(nodes, 0, size * sizeof *nodes);
    nodes[0] = 1ul << numa_node(device->gpu);
    return SUCCESS;
}

#endif

/* ---- the library: events ---- */

Return nvmlEventSetCreate(EventSet **set) {
    *set = calloc(1, sizeof **set);
    return SUCCESS;
}

Return nvmlEventSetFree(EventSet *set) {
    free(set);
    return SUCCESS;
}

Return nvmlDeviceGetSupportedEventTypes(Device *device, unsigned long long *types) {
    OPTIONAL(device, "events");
    *types = XID_EVENT;
    return SUCCESS;
}

Return nvmlDeviceRegisterEvents(Device *device, unsigned long long types, EventSet *set) {
    OPTIONAL(device, "events");
    set->watched[device->gpu] = (types & XID_EVENT) != 0;
    set->seen[device->gpu] = number(device->gpu, "xid_seq", 0);
    return SUCCESS;
}

static int next_event(EventSet *set, Event *event) {
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        long long raised = number(gpu, "xid_seq", 0);
        if (!set->watched[gpu] || raised <= set->seen[gpu]) continue;
        set->seen[gpu] = raised;
        *event = (Event){.device = &gpus[gpu], .type = XID_EVENT, .compute_instance = NO_INSTANCE};
        event->data = (unsigned long long)number(gpu, "xid", 79);
        event->gpu_instance = (unsigned)number(gpu, "xid_gi", NO_INSTANCE);
        return 1;
    }
    return 0;
}

Return nvmlEventSetWait_v2(EventSet *set, Event *event, unsigned milliseconds) {
    enum { STEP = 1 };
    for (unsigned waited = 0;; waited += STEP) {
        if (next_event(set, event)) return SUCCESS;
        if (waited >= milliseconds) return TIMEOUT;
        usleep(STEP * 1000);
    }
}
