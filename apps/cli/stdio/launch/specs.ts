import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readText } from '@plat/config'
import type { Manifest } from '@plat/resources'
import { withoutPinnedNode } from '../../run/environment.ts'
import type { PlatFolder } from '../../shared/home.ts'
import type { ServerSpec } from '../protocol.ts'
import { resolvedPath } from './programs.ts'
import type { Sandbox } from './sandbox.ts'

type Server = Manifest<'MCPServer'>
type Stdio = NonNullable<Server['spec']['stdio']>

/** Variables of the environment of `plat up` that servers get. */
const PASSED = ['HOME', 'LANG'] as const
const DEFAULT_IDLE_SECONDS = 600
/** Largest value of a Secret, in bytes. */
const SECRET_MAX_BYTES = 128 * 1024

/** Where servers run. */
export interface SpecContext {
  readonly home: PlatFolder
  readonly sandbox: Sandbox
  readonly env: NodeJS.ProcessEnv
}

/** Returns what the bridge runs for these resources, by name. Servers with a URL are left out. */
export async function specsOf(servers: readonly Server[], context: SpecContext): Promise<ServerSpec[]> {
  const specs: ServerSpec[] = []
  for (const { metadata, spec } of servers)
    if (spec.stdio !== undefined) specs.push(await specOf(metadata, spec.stdio, context))
  return specs.toSorted((a, b) => (a.key < b.key ? -1 : 1))
}

async function specOf(
  { namespace, name }: Server['metadata'],
  stdio: Stdio,
  { home, sandbox, env: outer }: SpecContext,
): Promise<ServerSpec> {
  const { command, args = [], perSession = true, idleSeconds = DEFAULT_IDLE_SECONDS, isolation = {} } = stdio
  const cwd = workingFolder(home, stdio)
  const { values, secrets, missing } = await valuesOf(join(home.secrets, namespace), stdio)
  const { prefix, problem } = sandbox.wrap(isolation, cwd)
  const passed = Object.fromEntries(PASSED.flatMap((one) => (outer[one] === undefined ? [] : [[one, outer[one]]])))
  return {
    key: `${namespace}/${name}`,
    argv: [...prefix, command, ...args],
    env: { PATH: withoutPinnedNode(outer.PATH ?? ''), ...passed, ...values },
    secrets,
    cwd,
    perSession,
    idleMs: idleSeconds * 1000,
    problem: missing ?? problem ?? (existsSync(cwd) ? null : `stdio.cwd: ${cwd} does not exist`),
  }
}

/** Returns the working directory of a server. */
export function workingFolder({ dir }: Pick<PlatFolder, 'dir'>, { cwd = '.' }: Pick<Stdio, 'cwd'>): string {
  return resolvedPath(dir, cwd)
}

async function valuesOf(folder: string, { env = [] }: Stdio) {
  const values: Record<string, string> = {}
  const secrets: string[] = []
  let missing: string | null = null
  for (const { name, value, valueFrom } of env) {
    const ref = valueFrom?.secretKeyRef
    if (ref === undefined) {
      values[name] = value ?? ''
      continue
    }
    const text = await readText(join(folder, ref.name, ref.key), SECRET_MAX_BYTES)
    if (text === null) missing ??= `stdio.env: no Secret ${ref.name}/${ref.key} for ${name}`
    else if (text.includes('\0')) missing ??= `stdio.env: Secret ${ref.name}/${ref.key} contains the character NUL`
    else {
      // Editors end files with a line end.
      values[name] = text.replace(/\r?\n$/, '')
      secrets.push(name)
    }
  }
  return { values, secrets, missing }
}
