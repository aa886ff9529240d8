import { existsSync, globSync, statSync } from 'node:fs'
import path from 'node:path'

/** Where tests live; everything else is installed or generated. */
const HOMES = ['packages', 'services', 'apps', 'sdk', 'examples', 'bench', 'tools', 'test']

/** Suites that need more than `npm ci` have separate scripts. */
const ELSEWHERE = /\.(?:system|browser|cluster)\.test\.ts$|(?:^|\/)test\/cluster\//

const OPTIONS = '--test-name-pattern=<regex> and -slowest=<count>'

export interface Plan {
  /** Files that open no socket and start no process: all in one process. */
  readonly shared: readonly string[]
  /** Files with sockets and child processes: a process for a few of them. */
  readonly live: readonly string[]
  /** Whether these are all tests of the suite. */
  readonly whole: boolean
  /** Only tests whose name matches one of these run; empty: all. */
  readonly names: readonly string[]
  /** How many of the files that used most CPU time to print at the end; 0: no times. */
  readonly slowest: number
}

/**
 * Reads the arguments of `npm test`: files or folders to look in (default: all), `--test-name-pattern=<regex>`,
 * `-slowest=<count>`.
 * @throws Error naming the argument that leads to no test.
 */
export function planTests(root: string, args: readonly string[]): Plan {
  const names: string[] = []
  const places: string[] = []
  let slowest = 0
  for (const arg of args) {
    const [flag, value] = arg.split(/=(.*)/s)
    if (flag === '--test-name-pattern' && value) names.push(value)
    else if (flag === '-slowest' && /^\d+$/.test(value ?? '')) slowest = Number(value)
    else if (arg.startsWith('-')) throw new Error(`${arg}: unknown option; known are ${OPTIONS}`)
    else places.push(arg)
  }
  const files = new Set<string>()
  for (const place of places.length > 0 ? places : HOMES) {
    const found = testsIn(path.resolve(root, place))
    if (found.length === 0 && places.length > 0) throw new Error(`${place}: no tests there`)
    for (const file of found) files.add(file)
  }
  const sorted = [...files].sort()
  return {
    shared: sorted.filter((file) => !file.endsWith('.live.test.ts')),
    live: sorted.filter((file) => file.endsWith('.live.test.ts')),
    whole: places.length === 0 && names.length === 0,
    names,
    slowest,
  }
}

function testsIn(place: string): string[] {
  if (!existsSync(place)) return []
  const found = statSync(place).isFile()
    ? [place]
    : globSync('**/*.test.ts', { cwd: place, exclude: (name) => name === 'node_modules' }).map((file) =>
        path.join(place, file),
      )
  return found.filter((file) => file.endsWith('.test.ts') && !ELSEWHERE.test(file))
}
