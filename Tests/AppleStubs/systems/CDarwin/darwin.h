/* Of Apple's C library, what the store's engine names: types, their widths and the orders of members
   as Apple's headers have them, which differ from those of Linux. */
#ifndef ROUSE_DARWIN_STUB_H
#define ROUSE_DARWIN_STUB_H

typedef __SIZE_TYPE__ size_t;
typedef long ssize_t;
typedef long long off_t;
typedef int pid_t;
typedef unsigned int uid_t;
typedef unsigned int gid_t;
typedef int dev_t;
typedef unsigned long long ino_t;
typedef unsigned short mode_t;
typedef unsigned short nlink_t;
typedef unsigned int useconds_t;
typedef long time_t;

struct timespec {
    time_t tv_sec;
    long tv_nsec;
};

typedef enum { _CLOCK_REALTIME = 0, _CLOCK_MONOTONIC = 6 } clockid_t;
int clock_gettime(clockid_t clock, struct timespec *time);

struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec;
    struct timespec st_mtimespec;
    struct timespec st_ctimespec;
    struct timespec st_birthtimespec;
    off_t st_size;
    long long st_blocks;
    int st_blksize;
};
int stat(const char *path, struct stat *into);
int lstat(const char *path, struct stat *into);
int fstat(int descriptor, struct stat *into);

struct flock {
    off_t l_start;
    off_t l_len;
    pid_t l_pid;
    short l_type;
    short l_whence;
};
int flock(int descriptor, int operation);
#define LOCK_EX 0x02
#define LOCK_NB 0x04
#define F_GETLK 7
#define F_UNLCK 2
#define F_WRLCK 3
#define SEEK_SET 0

#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_NONBLOCK 0x00000004
#define O_NOFOLLOW 0x00000100
#define O_CREAT 0x00000200
#define O_TRUNC 0x00000400
#define O_EXCL 0x00000800
#define O_CLOEXEC 0x01000000

#define F_OK 0
#define R_OK (1 << 2)
#define W_OK (1 << 1)
#define AT_FDCWD -2
#define AT_EACCESS 0x0010
int access(const char *path, int mode);
int faccessat(int descriptor, const char *path, int mode, int flags);

int close(int descriptor);
ssize_t read(int descriptor, void *into, size_t count);
ssize_t write(int descriptor, const void *bytes, size_t count);
ssize_t pread(int descriptor, void *into, size_t count, off_t from);
ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t at);
int fsync(int descriptor);
int ftruncate(int descriptor, off_t length);
int fchmod(int descriptor, mode_t mode);
int fchown(int descriptor, uid_t owner, gid_t group);
int link(const char *from, const char *to);
int rename(const char *from, const char *to);
int unlink(const char *path);
char *realpath(const char *restrict path, char *restrict into);
int usleep(useconds_t microseconds);
uid_t geteuid(void);
pid_t getpid(void);

struct passwd {
    char *pw_name;
    char *pw_passwd;
    uid_t pw_uid;
    gid_t pw_gid;
    time_t pw_change;
    char *pw_class;
    char *pw_gecos;
    char *pw_dir;
    char *pw_shell;
    time_t pw_expire;
};
int getpwuid_r(
    uid_t user, struct passwd *into, char *buffer, size_t count, struct passwd **found);

int memcmp(const void *left, const void *right, size_t count);
char *strdup(const char *text);
char *strerror(int number);
void free(void *bytes);

#define EPERM 1
#define ENOENT 2
#define EACCES 13
#define EEXIST 17
#define EFBIG 27
#define ENOSPC 28
#define EAGAIN 35
#define EWOULDBLOCK EAGAIN
#define EDQUOT 69

#endif
