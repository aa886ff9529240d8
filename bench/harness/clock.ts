/** Milliseconds of the machine's monotonic clock, with a fraction: the same in every process. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
