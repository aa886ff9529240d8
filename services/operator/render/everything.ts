import type { Manifest } from '@plat/resources'
import type { PolicyFile } from '@plat/resources/rendered'
import { renderAgents } from './agents.ts'
import { renderBudgets } from './budgets.ts'
import type { Declared } from './declared.ts'
import { renderMemory } from './memory.ts'
import { type KeyFileOf, renderModels } from './models.ts'
import { renderPolicies } from './policies.ts'
import { renderSovereignty } from './sovereignty.ts'
import { renderUpstreams } from './upstreams.ts'

export interface RenderedFile {
  /** `policies.json` */
  readonly name: string
  /** For people: as it is on disk. */
  pretty(): string
  /** The same without white space: as it is in a cluster. */
  compact(): string
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

/** Every file that the gateway reads but revocations, from everything that is declared. `previous`: the policies before, for their generation. */
export function renderEverything(
  declared: Declared,
  keyFileOf: KeyFileOf,
  previous: Pick<PolicyFile, 'generation' | 'revision'> | null,
): Everything {
  const sovereignty = renderSovereignty(declared)
  const policies = renderPolicies(declared, previous)
  const budgets = renderBudgets(declared)
  const upstreams = renderUpstreams(declared)
  const files = {
    'sovereignty.json': sovereignty.file,
    'policies.json': policies.file,
    'budgets.json': budgets.file,
    'upstreams.json': upstreams.file,
    'models.json': renderModels(declared, keyFileOf).file,
    'agents.json': renderAgents(declared).file,
    'memory.json': renderMemory(declared).file,
  }
  return {
    files: Object.entries(files).map(([name, file]) => fileOf(name, file)),
    policies: policies.file,
    refused: [policies, upstreams, budgets, sovereignty].flatMap((rendered) => rendered.refused),
  }
}

function fileOf(name: string, file: object): RenderedFile {
  return { name, pretty: () => `${JSON.stringify(file, null, 2)}\n`, compact: () => JSON.stringify(file) }
}

/** Does some policy have a Cedar text? Its engine is loaded only then. */
export function hasCedar(policies: readonly Manifest<'ToolPolicy'>[]): boolean {
  return policies.some(({ spec }) => (spec.cedar ?? '') !== '')
}
