import { stat } from 'node:fs/promises'
import { type Clock, systemClock } from '@plat/core'
import type { GatewayConfig } from '@plat/gateway'
import type { Render } from '@plat/operator'
import type { FileStore } from '@plat/resources'
import type { PlatFolder } from '../shared/home.ts'
import type { Output } from '../shared/output.ts'
import { locateRefused, locateWarnings } from '../validate/locate.ts'
import { modelKeyFiles, stdioFiles } from '../validate/warnings/agents.ts'
import { readSurroundings } from '../validate/warnings/surroundings.ts'
import { findWarnings } from '../validate/warnings/warnings.ts'

/** Problems of the directory while plat runs, one line each. */
export interface Problems {
  /** Declared and not in force; agents that depend on it are denied. */
  readonly refused: readonly string[]
  /** In force, and probably not meant. */
  readonly warnings: readonly string[]
}

/** Above this number of objects warnings are left to `plat validate`: the process of `plat up` also serves calls. */
const OBJECTS_MAX = 2000

/** Returns a function that finds the problems. What depends on nothing that has changed is not read again. */
export function createProblemFinder(parts: {
  readonly home: PlatFolder
  readonly store: Pick<FileStore, 'locate'>
  readonly render: Pick<Render, 'refused' | 'declared'>
  /** The configuration can be replaced while plat runs. */
  readonly served: { readonly config: GatewayConfig }
}): () => Promise<Problems> {
  const { home, store, render, served } = parts
  let last: {
    readonly declared: object
    readonly config: GatewayConfig
    readonly files: string
    readonly refused: string
    readonly found: Problems
  } | null = null
  return async () => {
    const { config } = served
    const declared = render.declared()
    const lines = render.refused()
    const refused = lines.join('\n')
    const keys = [...modelKeyFiles(declared.agents, home.secrets), ...stdioFiles(declared.servers, home)]
    const files = await stamps([config.pinStorePath, config.pricingFile, config.modelsFile, ...keys])
    const isSame = last?.declared === declared && last.config === config
    if (isSame && last?.files === files && last.refused === refused) return last.found
    const { agents, servers, policies, budgets } = declared
    const isLarge = agents.length + servers.length + policies.length + budgets.length > OBJECTS_MAX
    const surroundings = { declared, config, dir: home.dir, secretsDir: home.secrets, env: process.env }
    const warnings = isLarge ? [] : await findWarnings(await readSurroundings(surroundings))
    const found = {
      refused: await locateRefused(store, lines),
      warnings: isLarge ? [TOO_MANY] : await locateWarnings(store, home.dir, warnings),
    }
    last = { declared, config, files, refused, found }
    return found
  }
}

const TOO_MANY = `more than ${OBJECTS_MAX} resources: rules that match nothing are not looked for; run plat validate`

/** Changes when one of the files does. */
async function stamps(paths: readonly string[]): Promise<string> {
  const all = paths.map(async (path) => {
    const found = path === '' ? null : await stat(path).catch(() => null)
    return found === null ? '' : `${found.ino} ${found.size} ${found.mtimeMs}`
  })
  return (await Promise.all(all)).join('\n')
}

/** How often changes are reported, in milliseconds. */
const REPORT_EVERY_MS = 1000

/** Reports changes, and problems that are new or fixed, from now on; a failure to look for them is a line as well. Returns a function that stops it. */
export function reportProblems(
  running: { problems(): Promise<Problems>; changes?(): Promise<readonly string[]> },
  output: Output,
  clock: Clock = systemClock,
): () => void {
  let known: Problems | null = null
  let finding = false
  const report = async () => {
    const before = known
    for (const line of (await running.changes?.()) ?? []) output.err(line)
    const now = await running.problems()
    known = now
    if (before === null) return
    printNew(before.refused, now.refused, (line) => output.err(`refused, and denied until fixed: ${line}`))
    printNew(before.warnings, now.warnings, (line) => output.err(`warning: ${line}`))
    const remaining = [...now.refused, ...now.warnings]
    printNew(remaining, [...before.refused, ...before.warnings], (line) => output.err(`fixed: ${line}`))
  }
  const look = () => {
    if (finding) return
    finding = true
    report()
      .catch((error: unknown) => output.err(`the resources could not be checked: ${String(error)}`))
      .finally(() => {
        finding = false
      })
  }
  look()
  return clock.every(REPORT_EVERY_MS, look)
}

function printNew(before: readonly string[], now: readonly string[], print: (line: string) => void): void {
  const known = new Set(before)
  for (const line of now) if (!known.has(line)) print(line)
}
