/** What a sandbox used. */
export interface SandboxUse {
  /** Milliseconds of one processor. */
  readonly cpuMs: number
  /** Bytes times seconds. */
  readonly memoryByteSeconds: number
  /** Milliseconds of one GPU. */
  readonly gpuMs: number
}

/** What sandboxes cost, in micro-units for each hour of a processor, of a GiB, of a GPU. */
export interface SandboxPrice {
  readonly cpuHour: bigint
  readonly memoryGiBHour: bigint
  readonly gpuHour: bigint
}

const HOUR_MS = 3_600_000n
const GIB = 1024n ** 3n
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/** Micro-units, rounded up once. */
export function sandboxCostOf(price: SandboxPrice, { cpuMs, memoryByteSeconds, gpuMs }: SandboxUse): number {
  // Everything in milliseconds of a GiB, so that nothing is rounded on the way.
  const byTime = (BigInt(cpuMs) * price.cpuHour + BigInt(gpuMs) * price.gpuHour) * GIB
  const parts = byTime + BigInt(memoryByteSeconds) * 1000n * price.memoryGiBHour
  const whole = HOUR_MS * GIB
  const micros = (parts + whole - 1n) / whole
  return Number(micros > LARGEST ? LARGEST : micros)
}
