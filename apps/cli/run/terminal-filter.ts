/**
 * A seccomp filter that refuses the two requests of `ioctl` by which a program types into its own terminal. Without it the program could
 * leave a command behind that the person's shell runs after `plat run` has ended. Everything else is allowed.
 */

/** TIOCSTI puts a character into the input queue; TIOCLINUX pastes the selection of a console. */
const FORBIDDEN_REQUESTS = [0x5412, 0x541c]

interface Architecture {
  /** `AUDIT_ARCH_*` of linux/audit.h, and the number of `ioctl` there. */
  readonly native: readonly [audit: number, ioctl: number]
  /** The 32-bit programs that the same kernel runs. */
  readonly compat: readonly [audit: number, ioctl: number]
}

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: { native: [0xc000003e, 16], compat: [0x40000003, 54] },
  arm64: { native: [0xc00000b7, 29], compat: [0x40000028, 54] },
}

/** Numbers from here on belong to the x32 ABI, whose `ioctl` has another number; x32 programs are refused. */
const X32_FROM = 0x40000000

const LOAD = 0x20 // BPF_LD | BPF_W | BPF_ABS
const JUMP_IF_EQUAL = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_AT_LEAST = 0x35 // BPF_JMP | BPF_JGE | BPF_K
const RETURN = 0x06 // BPF_RET | BPF_K

const ALLOW = 0x7fff0000
const REFUSE = 0x00050001 // SECCOMP_RET_ERRNO with EPERM

/** Offsets in `struct seccomp_data`; the low half of the second argument on a little-endian machine. */
const NUMBER = 0
const ARCHITECTURE = 4
const REQUEST = 24

/** Returns the filter as the bytes that `bwrap --seccomp` reads; null for an architecture without a row. */
export function terminalFilter(arch: string): Buffer | null {
  const row = ARCHITECTURES[arch]
  if (row === undefined) return null
  const [sti, linux] = FORBIDDEN_REQUESTS
  const instructions: readonly (readonly [code: number, ifTrue: number, ifFalse: number, value: number | undefined])[] =
    [
      /*  0 */ [LOAD, 0, 0, ARCHITECTURE],
      /*  1 */ [JUMP_IF_EQUAL, 3, 0, row.native[0]],
      /*  2 */ [JUMP_IF_EQUAL, 0, 8, row.compat[0]],
      /*  3 */ [LOAD, 0, 0, NUMBER],
      /*  4 */ [JUMP_IF_EQUAL, 3, 5, row.compat[1]],
      /*  5 */ [LOAD, 0, 0, NUMBER],
      /*  6 */ [JUMP_IF_AT_LEAST, 4, 0, X32_FROM],
      /*  7 */ [JUMP_IF_EQUAL, 0, 2, row.native[1]],
      /*  8 */ [LOAD, 0, 0, REQUEST],
      /*  9 */ [JUMP_IF_EQUAL, 1, 2, sti],
      /* 10 */ [RETURN, 0, 0, ALLOW],
      /* 11 */ [RETURN, 0, 0, REFUSE],
      /* 12 */ [JUMP_IF_EQUAL, 0, 1, linux],
      /* 13 */ [RETURN, 0, 0, REFUSE],
      /* 14 */ [RETURN, 0, 0, ALLOW],
    ]
  const bytes = Buffer.alloc(instructions.length * 8)
  instructions.forEach(([code, ifTrue, ifFalse, value], index) => {
    const at = index * 8
    bytes.writeUInt16LE(code, at)
    bytes.writeUInt8(ifTrue, at + 2)
    bytes.writeUInt8(ifFalse, at + 3)
    bytes.writeUInt32LE(value ?? 0, at + 4)
  })
  return bytes
}
