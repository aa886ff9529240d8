import { existsSync, globSync, statSync } from 'node:fs'
import path from 'node:path'

/** Where tests live; everything else is installed or generated. */
const HOMES = ['packages', 'services', 'apps', 'sdk', 'examples', 'bench', 'tools', 'test']

/** Suites that need more than `npm ci` have separate scripts. */
const ELSEWHERE = /\.(?:system|browser|cluster)\.test\.ts$|(?:^|\/)test\/cluster\//

/** Plan of one run of the tests. */
export interface Plan {
  /** Files that open no socket and start no process: all in one process. */
  readonly shared: readonly string[]
  /** Files with sockets and child processes: a process each. */
  readonly isolated: readonly string[]
  /** Only tests whose name matches one of these run; empty: all. */
  readonly names: readonly string[]
}

/**
 * Reads the arguments of `npm test`: files or folders to look in (default: all), `--test-name-pattern=<regex>`.
 * @throws Error naming the argument that leads to no test.
 */
export function planTests(root: string, args: readonly string[]): Plan {
  const names: string[] = []
  const places: string[] = []
  for (const arg of args) {
    const [flag, value] = arg.split(/=(.*)/s)
    if (flag === '--test-name-pattern' && value) names.push(value)
    else if (arg.startsWith('-')) throw new Error(`${arg}: unknown option; known is --test-name-pattern=<regex>`)
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
    isolated: sorted.filter((file) => file.endsWith('.live.test.ts')),
    names,
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
