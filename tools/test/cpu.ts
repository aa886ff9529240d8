import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** The file to which each test process appends its line as it ends; absent: no process measures itself. */
const RECORDS = 'PLAT_TEST_CPU_RECORDS'

/** Linux counts the time of children in units of 10 ms. */
const TICKS_PER_SECOND = 100

/** Makes every test process that starts from now on append its CPU time to a file. */
export function recordCpuTimes(file: string): void {
  process.env[RECORDS] = file
}

/** Appends the CPU time of this process to the file of the run as it ends. The programs that it starts do not. */
export function recordOwnCpuTime(): void {
  const file = process.env[RECORDS]
  if (file === undefined) return
  delete process.env[RECORDS]
  process.once('exit', () =>
    appendFileSync(file, `${JSON.stringify([process.argv[1], ownSeconds() + childSeconds()])}\n`),
  )
}

/** Prints the files that used most CPU time, and the sum of all. */
export function printSlowest(file: string, count: number, nameOf: (file: string) => string): void {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  const times = lines.map((line): [string, number] => JSON.parse(line)).sort(([, a], [, b]) => b - a)
  for (const [name, seconds] of times.slice(0, count))
    console.log(`${seconds.toFixed(2).padStart(8)} s  ${nameOf(name)}`)
  console.log(`${childSeconds().toFixed(2).padStart(8)} s  of CPU time in ${times.length} processes and their children`)
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** CPU seconds of the children that have ended, with theirs; 0 where the system does not say. */
function childSeconds(): number {
  if (!existsSync('/proc/self/stat')) return 0
  // The name of the program, in brackets, may contain spaces; `cutime` and `cstime` are the 16th and 17th fields.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
}
