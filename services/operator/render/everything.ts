import type { Manifest } from '@plat/resources'
import { BUDGETS_MAX, type PolicyFile, STORES_MAX } from '@plat/resources/rendered'
import { renderAgents } from './agents.ts'
import { renderBudgets } from './budgets.ts'
import type { Declared } from './declared.ts'
import { renderMemory } from './memory.ts'
import { type KeyFileOf, renderModels } from './models.ts'
import { renderPolicies } from './policies.ts'
import { type PackedFile, packFile } from './size/packed.ts'
import { renderSovereignty } from './sovereignty.ts'
import { renderUpstreams } from './upstreams.ts'

export interface RenderedFile {
  readonly name: FileName
  /** Entries of it, as a share of those that a gateway accepts; above 1 it refuses the file. */
  readonly fullness: number
  /** For people: as it is on disk. */
  pretty(): string
  /** The same without white space: as it is in a cluster. */
  compact(): string
  /** As a ConfigMap holds it. */
  packed(): Promise<PackedFile>
}

export interface Everything {
  /**
   * In the order in which they are put in force: a server is not found before the rules for it are there. The credentials come before
   * all of them.
   */
  readonly files: readonly RenderedFile[]
  /** Content of `policies.json`. */
  readonly policies: PolicyFile
  /** One line for everything that is declared and not in force. */
  readonly refused: readonly string[]
}

/** Inputs of a rendering other than resources. */
export interface RenderContext {
  readonly keyFileOf: KeyFileOf
  /** The policies before, for their generation; null: there are none. */
  readonly previous: Pick<PolicyFile, 'generation' | 'revision'> | null
}

interface Content {
  readonly file: object
  readonly refused?: readonly string[]
  readonly fullness?: number
}

/** Every file that the gateway reads but revocations, in the order in which they are put in force. */
const RENDERERS = {
  'sovereignty.json': renderSovereignty,
  'policies.json': (declared: Declared, { previous }: RenderContext) => renderPolicies(declared, previous),
  'budgets.json': (declared: Declared) => {
    const budgets = renderBudgets(declared)
    return { ...budgets, fullness: budgets.file.budgets.length / BUDGETS_MAX }
  },
  'upstreams.json': renderUpstreams,
  'models.json': (declared: Declared, { keyFileOf }: RenderContext) => renderModels(declared, keyFileOf),
  'agents.json': renderAgents,
  'memory.json': (declared: Declared) => {
    const memory = renderMemory(declared)
    return { ...memory, fullness: Object.keys(memory.file.stores).length / STORES_MAX }
  },
} as const satisfies Record<string, (declared: Declared, context: RenderContext) => Content>

export type FileName = keyof typeof RENDERERS

const FILE_NAMES = [
  'sovereignty.json',
  'policies.json',
  'budgets.json',
  'upstreams.json',
  'models.json',
  'agents.json',
  'memory.json',
] as const satisfies readonly FileName[]

/** Renders every file from everything that is declared. */
export function renderEverything(declared: Declared, context: RenderContext): Everything {
  const policies = RENDERERS['policies.json'](declared, context)
  const contents: Readonly<Record<FileName, Content>> = {
    'sovereignty.json': RENDERERS['sovereignty.json'](declared),
    'policies.json': policies,
    'budgets.json': RENDERERS['budgets.json'](declared),
    'upstreams.json': RENDERERS['upstreams.json'](declared),
    'models.json': RENDERERS['models.json'](declared, context),
    'agents.json': RENDERERS['agents.json'](declared),
    'memory.json': RENDERERS['memory.json'](declared),
  }
  return {
    files: FILE_NAMES.map((name) => fileOf(name, contents[name])),
    policies: policies.file,
    refused: FILE_NAMES.flatMap((name) => contents[name].refused ?? []),
  }
}

export function renderFile(name: FileName, declared: Declared, context: RenderContext): RenderedFile {
  return fileOf(name, RENDERERS[name](declared, context))
}

function fileOf(name: FileName, { file, fullness = 0 }: Content): RenderedFile {
  let text: string | undefined
  let packed: Promise<PackedFile> | undefined
  const compact = () => {
    text ??= JSON.stringify(file)
    return text
  }
  return {
    name,
    fullness,
    pretty: () => `${JSON.stringify(file, null, 2)}\n`,
    compact,
    packed: () => {
      packed ??= packFile(name, compact())
      return packed
    },
  }
}

/** Does some policy have a Cedar text? Its engine is loaded only then. */
export function hasCedar(policies: readonly Manifest<'ToolPolicy'>[]): boolean {
  return policies.some(({ spec }) => (spec.cedar ?? '') !== '')
}
