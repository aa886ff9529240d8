import { type FlagTable, parseFlags } from '@plat/config'
import { type Hammered, hammer } from './hammer.ts'

const FLAGS = {
  count: { type: 'int', default: 1_000_000, min: 1, help: 'malformed requests to send' },
  seed: { type: 'int', default: -1, help: 'draws the same requests again; others each time when absent' },
} as const satisfies FlagTable

const BAR_WIDTH = 40
const MIB = 1024 * 1024
/** Allowed memory growth after the first tenth of the run; a leak of 64 bytes per request exceeds it after a million requests. */
const GROWTH_BYTES = 48 * MIB
/** A shorter run is all warm-up: a young process still compiles, and that is not a slope. */
const SLOPE_COUNT = 500_000

/** Malformed requests against a real gateway: `npm run long -- -only malformed`, or this file with its flags. */
async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'node test/long/run.ts')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const { count } = flags.values
  const seed = flags.values.seed >= 0 ? flags.values.seed : Date.now() % 2 ** 31
  console.log(`seed ${seed}`)
  const began = Date.now()
  const result = await hammer({ count, seed, tell: (done) => bar(done, count) })
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const seconds = (Date.now() - began) / 1000
  const grew = count < SLOPE_COUNT ? 0 : growth(result.retained)
  for (const line of report(result, seconds)) console.log(line)
  for (const fault of result.faults) console.log(`  ${fault}`)
  if (result.faults.length > 0) console.log(`again: node test/long/run.ts -count ${count} -seed ${seed}`)
  if (grew > GROWTH_BYTES) console.log(`  what the gateway keeps grew by ${mib(grew)}, more than ${mib(GROWTH_BYTES)}`)
  return result.faults.length === 0 && grew <= GROWTH_BYTES ? 0 : 1
}

function bar(done: number, count: number): void {
  if (!process.stderr.isTTY) return
  const full = Math.floor((done / count) * BAR_WIDTH)
  process.stderr.write(`\r${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${Math.floor((done / count) * 100)} %`)
}

function report({ sent, statuses, honest, memory, retained, faults }: Hammered, seconds: number): string[] {
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${status || 'none'} ${n}`)
  const [first, last] = tenths(memory)
  return [
    `${sent} malformed requests in ${seconds.toFixed(0)} s, ${honest} well-formed calls between them`,
    `answers: ${counts.join(', ')}`,
    memory.length === 0
      ? 'memory: not reported by this system'
      : `memory: ${mib(first)} in the first tenth, ${mib(last)} in the last, at most ${mib(Math.max(...memory))}`,
    `retained after each tenth: ${retained.map(mib).join(', ')}`,
    `broken promises: ${faults.length}`,
  ]
}

function growth(retained: readonly number[]): number {
  return (retained.at(-1) ?? 0) - (retained[0] ?? 0)
}

/** Mean of the first and of the last tenth. */
function tenths(memory: readonly number[]): [number, number] {
  const size = Math.max(1, Math.floor(memory.length / 10))
  const mean = (part: readonly number[]) => part.reduce((sum, bytes) => sum + bytes, 0) / part.length
  return [mean(memory.slice(0, size)), mean(memory.slice(-size))]
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(0)} MiB`
}

process.exitCode = await main(process.argv.slice(2))
