import type { Kind } from '@plat/resources'
import { ReconcileError } from '../controllers/controller.ts'
import type { RenderedFile } from '../render/everything.ts'
import { configMapOf, type Outputs } from './outputs.ts'

/** One ConfigMap or Secret to write. */
export interface Output {
  readonly name: string
  /** Kinds whose status says that they are in force once it is written. */
  readonly kinds: readonly Kind[]
  /** It limits calls: what can be reached is not written before it. */
  readonly isLimit: boolean
  /** Why its content is not known; null: it is. */
  readonly unread: { readonly error: unknown } | null
  readonly write: (signal: AbortSignal) => Promise<void>
}

const KINDS: Readonly<Record<string, readonly Kind[]>> = {
  'sovereignty.json': ['SovereigntyPolicy'],
  'policies.json': ['Agent', 'ToolPolicy'],
  'budgets.json': ['BudgetPolicy'],
  'upstreams.json': ['Agent', 'MCPServer', 'ToolPolicy'],
  'models.json': ['Agent', 'TrustTier'],
  'agents.json': ['Agent'],
  'memory.json': ['MemoryStore'],
}

const LIMITS: ReadonlySet<string> = new Set(['sovereignty.json', 'policies.json', 'budgets.json'])

export function configMapOutput(outputs: Outputs, file: RenderedFile, unread: Output['unread']): Output {
  const name = configMapOf(file.name)
  return {
    name,
    kinds: KINDS[file.name] ?? [],
    isLimit: LIMITS.has(file.name),
    unread,
    write: async (signal) => {
      if (file.fullness > 1)
        throw new ReconcileError('TooLarge', `${file.name} has more entries than a gateway accepts`)
      await outputs.configMap(name, await file.packed(), signal)
    },
  }
}

export function secretOutput(
  outputs: Outputs,
  { name, kinds, unread }: Pick<Output, 'name' | 'kinds' | 'unread'>,
  files: ReadonlyMap<string, string>,
): Output {
  const write = (signal: AbortSignal) => outputs.secret(name, files, signal)
  return { name, kinds, unread, isLimit: false, write }
}

/** Failed outputs, in the order of failure. */
export interface Unwritten {
  readonly errors: readonly unknown[]
  readonly names: ReadonlySet<string>
  readonly kinds: ReadonlySet<Kind>
}

/**
 * Writes each output, whatever becomes of the others: first what limits calls, then what can be reached. While a limit cannot be written
 * the latter stays as it was: a server is not found before the rules for it are there.
 */
export async function writeOutputs(outputs: Outputs, all: readonly Output[], signal: AbortSignal): Promise<Unwritten> {
  const errors: unknown[] = []
  const names = new Set<string>()
  const kinds = new Set<Kind>()
  const hold = (output: Output) => {
    names.add(output.name)
    for (const kind of output.kinds) kinds.add(kind)
  }
  const write = async (output: Output) => {
    const failed = await outputs.attempt(output.name, signal, async () => {
      if (output.unread !== null) throw output.unread.error
      await output.write(signal)
    })
    if (failed === null) return
    errors.push(failed.error)
    hold(output)
  }
  for (const output of all.filter(({ isLimit }) => isLimit)) await write(output)
  const rest = all.filter(({ isLimit }) => !isLimit)
  if (errors.length > 0) for (const output of rest) hold(output)
  else for (const output of rest) await write(output)
  return { errors, names, kinds }
}
