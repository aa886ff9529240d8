/** Resource usage of a sandbox. */
export interface SandboxUse {
  /** CPU time, in milliseconds. */
  readonly cpuMs: number
  /** Memory over time, in byte-seconds. */
  readonly memoryByteSeconds: number
  /** GPU time, in milliseconds. */
  readonly gpuMs: number
}

/** Price of sandboxes in micro-units per CPU hour, GiB hour and GPU hour. */
export interface SandboxPrice {
  readonly cpuHour: bigint
  readonly memoryGiBHour: bigint
  readonly gpuHour: bigint
}

const HOUR_MS = 3_600_000n
const GIB = 1024n ** 3n
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/** Cost in micro-units, rounded up once. */
export function sandboxCostOf(price: SandboxPrice, { cpuMs, memoryByteSeconds, gpuMs }: SandboxUse): number {
  // In GiB-milliseconds, to avoid intermediate rounding.
  const byTime = (BigInt(cpuMs) * price.cpuHour + BigInt(gpuMs) * price.gpuHour) * GIB
  const parts = byTime + BigInt(memoryByteSeconds) * 1000n * price.memoryGiBHour
  const whole = HOUR_MS * GIB
  const micros = (parts + whole - 1n) / whole
  return Number(micros > LARGEST ? LARGEST : micros)
}
