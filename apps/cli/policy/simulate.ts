import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, parseStrict, reasonOf, rfc3339, systemClock } from '@plat/core'
import { isSimulation, type SimulatedCall, type Simulation } from '@plat/gateway/simulation'
import { admin } from '../shared/admin-api.ts'
import { EXIT } from '../shared/exit-codes.ts'
import { findGateway } from '../shared/gateway.ts'
import { homeOf } from '../shared/home.ts'
import { CommandError, type Format, type Output, plain } from '../shared/output.ts'
import { printData, printList } from '../shared/print.ts'
import { type ProgressScreen, progressBar } from '../shared/progress.ts'
import { readTime } from '../shared/times.ts'
import { locateRefused } from '../validate/locate.ts'
import { withRendered } from '../validate/rendered.ts'

export interface PolicySimulateOptions {
  readonly dir?: string | undefined
  readonly file: string
  readonly since: string
  readonly agent?: string | undefined
  readonly output: Format
}

/** Calls that are listed; further ones are only counted. */
const MAX_LISTED = 10_000
/** A simulation over less than so much time needs no progress bar, in milliseconds. */
const LONG_MS = 60_000

type Counts = Simulation['counts']

/** `plat policy simulate`: what policies that are not in force would have said of the calls in the ledger. */
export async function policySimulate(
  { dir, file, since, agent, output: format }: PolicySimulateOptions,
  output: Output,
  { screen = process.stderr, clock = systemClock }: { readonly screen?: ProgressScreen; readonly clock?: Clock } = {},
): Promise<number> {
  const { env } = await findGateway(dir)
  const policies = await readPolicies(file)
  const now = clock.now()
  const from = readTime(since, now)
  if (from === null) throw new CommandError(`-since ${since}: must be a time such as 24h, or 2026-11-20T00:00:00Z`)
  const bar = progressBar(screen, { least: LONG_MS })
  const items: SimulatedCall[] = []
  const left: Simulation['left'][number][] = []
  let counts: Counts = { same: 0, changed: 0, needs_arguments: 0, skipped: 0 }
  const query = {
    policies,
    since: rfc3339(from),
    show: ['changed', 'needs_arguments'],
    ...(agent !== undefined && { agent: agent.includes('/') ? agent : `default/${agent}` }),
  }
  try {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const body: object = cursor === '' ? query : { ...query, cursor }
      const page = await admin(env, 'POST', '/v1/policies/simulate', body)
      if (!isSimulation(page)) throw new CommandError('the response of the gateway is not a simulation')
      counts = sum(counts, page.counts)
      left.push(...page.left)
      items.push(...page.items.slice(0, MAX_LISTED - items.length))
      if (page.through !== null) bar.show(Date.parse(page.through.at) - from, now - from)
      cursor = page.nextCursor
    }
  } finally {
    bar.clear()
  }
  print(items, { counts, left }, format, output)
  for (const { first, last } of left)
    output.err(
      `records ${first} to ${last} left the disk (auditRetention) and were not evaluated; plat audit verify says where they are`,
    )
  return counts.changed + counts.needs_arguments === 0 ? 0 : EXIT.found
}

function print(
  items: readonly SimulatedCall[],
  { counts, left }: Pick<Simulation, 'counts' | 'left'>,
  format: Format,
  output: Output,
): void {
  if (format !== 'table') {
    printData(output, format, { counts, left, items })
    return
  }
  if (items.length > 0) printList(output, format, alike(items), columns)
  const { same, changed, needs_arguments: unknown, skipped } = counts
  const calls = same + changed + unknown
  output.out(`${calls} calls: ${same} same, ${changed} changed, ${unknown} depend on their arguments`)
  if (skipped > 0) output.out(`${skipped} more were judged by no policy: refused before, or in need of none`)
  const unlisted = changed + unknown - items.length
  if (unlisted > 0) output.out(`${unlisted} of them are not listed`)
}

/** Calls of one agent to one target that the policies would decide alike. */
interface AlikeCalls {
  readonly calls: number
  /** The latest of them. */
  readonly latest: SimulatedCall
}

/** Counts the calls that a person would read as one line, in the order of the first of each. */
function alike(items: readonly SimulatedCall[]): readonly AlikeCalls[] {
  const groups = new Map<string, AlikeCalls>()
  for (const item of items) {
    const { agent, call, was, would, rule } = columns
    const one = { calls: 1, latest: item }
    const key = JSON.stringify([agent, call, was, would, rule].map((column) => column(one)))
    groups.set(key, { calls: (groups.get(key)?.calls ?? 0) + 1, latest: item })
  }
  return [...groups.values()]
}

const columns = {
  calls: ({ calls }: AlikeCalls) => String(calls),
  agent: ({ latest: { namespace, agent } }: AlikeCalls) =>
    plain(namespace === 'default' ? agent : `${namespace}/${agent}`),
  call: ({ latest: { server, tool } }: AlikeCalls) => plain(tool === null ? server : `${server}/${tool}`),
  was: ({ latest }: AlikeCalls) => latest.was.action,
  would: ({ latest: { would, possible } }: AlikeCalls) => would?.action ?? possible.join(' or '),
  rule: ({ latest: { would } }: AlikeCalls) => plain([would?.policy, would?.rule].filter(Boolean).join(': ')),
  latest: ({ latest }: AlikeCalls) => latest.at.replace(/\.\d+Z$/, 'Z'),
}

function sum(one: Counts, other: Counts): Counts {
  return {
    same: one.same + other.same,
    changed: one.changed + other.changed,
    needs_arguments: one.needs_arguments + other.needs_arguments,
    skipped: one.skipped + other.skipped,
  }
}

/** The policies of a rendered file, or of the resources of a directory. */
async function readPolicies(file: string): Promise<unknown> {
  if ((await stat(file).catch(() => null))?.isDirectory() === true) return renderPolicies(file)
  try {
    return parseStrict(await readFile(file))
  } catch (error) {
    throw new CommandError(`${file} cannot be read as policies: ${reasonOf(error)}`)
  }
}

/** @throws CommandError with every resource that is refused: its agents would be denied, which is not what is to be tried */
async function renderPolicies(dir: string): Promise<unknown> {
  const home = homeOf(dir)
  if (!existsSync(join(home.dir, 'resources')))
    throw new CommandError(
      `${home.dir} has no resources/ folder; name a directory that has one, or write one with plat init`,
    )
  return withRendered(home, async ({ rendered, store, render }) => {
    const refused = await locateRefused(store, render.refused())
    if (refused.length > 0) throw new CommandError(refused.join('\n'))
    return parseStrict(await readFile(join(rendered, 'policies.json')))
  })
}
