import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** The file to which each test process appends its lines as it ends; absent: no process measures itself. */
const RECORDS = 'PLAT_TEST_CPU_RECORDS'

/** Name of the part of a process that belongs to no file: its start, and the imports of its test files. */
const START = 'start of test processes'

/** Linux counts the time of children in units of 10 ms. */
const TICKS_PER_SECOND = 100

/** Makes every test process that starts from now on append its CPU time to a file. */
export function recordCpuTimes(file: string): void {
  process.env[RECORDS] = file
}

let records: string | undefined
let attributed = 0

/** Appends the CPU time of this process that belongs to no test file to the file of the run as it ends. The programs that it starts do not. */
export function recordOwnCpuTime(): void {
  records = process.env[RECORDS]
  if (records === undefined) return
  delete process.env[RECORDS]
  process.once('exit', () => append(START, allSeconds() - attributed))
}

/** Measures the test files of this process one after another; undefined if nothing is measured. */
export function createFileMeter(): { start(): void; end(file: string): void } | undefined {
  if (records === undefined) return undefined
  let from = 0
  return {
    start() {
      from = allSeconds()
    },
    end(file) {
      const seconds = allSeconds() - from
      attributed += seconds
      append(file, seconds)
    },
  }
}

/** Prints the files that used most CPU time, the time of starts, and the sum of all. */
export function printSlowest(file: string, count: number, nameOf: (file: string) => string): void {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  const times = lines.map((line): [string, number] => JSON.parse(line))
  const starts = times.filter(([name]) => name === START)
  const files = times.filter(([name]) => name !== START).sort(([, a], [, b]) => b - a)
  for (const [name, seconds] of files.slice(0, count)) printTime(seconds, nameOf(name))
  printTime(
    starts.reduce((sum, [, seconds]) => sum + seconds, 0),
    `${START}: ${starts.length}`,
  )
  printTime(childSeconds(), `of CPU time in ${files.length} files and the processes that they start`)
}

function printTime(seconds: number, what: string): void {
  console.log(`${seconds.toFixed(2).padStart(8)} s  ${what}`)
}

function append(name: string, seconds: number): void {
  if (records !== undefined) appendFileSync(records, `${JSON.stringify([name, seconds])}\n`)
}

function allSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + childSeconds()
}

/** CPU seconds of the children that have ended, with theirs; 0 where the system does not say. */
function childSeconds(): number {
  if (!existsSync('/proc/self/stat')) return 0
  // The name of the program, in brackets, may contain spaces; `cutime` and `cstime` are the 16th and 17th fields.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
}
