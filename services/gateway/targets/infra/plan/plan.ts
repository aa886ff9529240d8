import { isObject, type JsonObject, Slices } from '@plat/core'

/**
 * Changes of one resource in a plan, as needed for its tier. From the JSON output format of Terraform and OpenTofu (`show -json`
 * of a saved plan, format 1.x).
 */
export interface Change {
  /** `module.a.aws_instance.web["blue"]` */
  readonly address: string
  /** Address before a move, or null. */
  readonly previousAddress: string | null
  readonly type: string
  readonly actions: ReadonlySet<Action>
  /** It exists already, and becomes managed. */
  readonly importing: boolean
  /** Its provisioners run programs on the machine that applies the plan. */
  readonly provisioned: boolean
}

/** `unknown` covers all words that the format may add. */
export type Action = 'create' | 'read' | 'update' | 'delete' | 'forget' | 'no-op' | 'unknown'

export interface Plan {
  readonly changes: readonly Change[]
  /** Number of provider actions run with the changes (`action_invocations`). */
  readonly invocations: number
}

const KNOWN: ReadonlySet<string> = new Set<Action>(['create', 'read', 'update', 'delete', 'forget', 'no-op'])

/** Maximum depth of nested modules, beyond any real plan. */
const MAX_MODULE_DEPTH = 64

/** Maximum length of an address, in characters; real ones have a few hundred. */
const MAX_NAME = 4_096

/** Parses a plan in slices. Returns a problem with its location for anything not understood; never guesses. */
export async function readPlan(value: unknown): Promise<Plan | string> {
  if (!isObject(value)) return 'the plan must be an object: the output of `show -json <plan file>`'
  const { format_version: version, errored } = value
  if (typeof version !== 'string' || !/^1\.\d+$/.test(version)) return 'format_version must be 1.x'
  if (errored === true) return 'errored is true: a plan that failed cannot be applied'
  const resources = listOf(value, 'resource_changes')
  if (typeof resources === 'string') return resources
  const deferred = listOf(value, 'deferred_changes')
  if (typeof deferred === 'string') return deferred
  const invocations = listOf(value, 'action_invocations')
  if (typeof invocations === 'string') return invocations
  const provisioned = new Set<string>()
  const slices = new Slices()
  const fault = await collectProvisioned(value, { found: provisioned, slices, depth: 0 })
  if (fault !== null) return fault
  const later = deferred.map((one) => (isObject(one) ? one.resource_change : one))
  const changes: Change[] = []
  for (const [index, one] of [...resources, ...later].entries()) {
    if (slices.isOver) await slices.next()
    const change = readChange(one, provisioned)
    if (typeof change === 'string') return `${placeOf(index, resources.length)}${change}`
    changes.push(change)
  }
  return { changes, invocations: invocations.length }
}

function placeOf(index: number, resources: number): string {
  return index < resources ? `resource_changes[${index}]` : `deferred_changes[${index - resources}].resource_change`
}

function listOf(object: JsonObject, name: string): readonly unknown[] | string {
  const value = object[name]
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : `${name} must be a list`
}

function readChange(value: unknown, provisioned: ReadonlySet<string>): Change | string {
  if (!isObject(value)) return ' must be an object'
  const { address, previous_address: previous, type, change } = value
  if (!isName(address)) return `.address must be a text of at most ${MAX_NAME} characters`
  if (previous !== undefined && !isName(previous))
    return `.previous_address must be a text of at most ${MAX_NAME} characters`
  if (!isName(type)) return `.type must be a text of at most ${MAX_NAME} characters`
  if (!isObject(change)) return '.change must be an object'
  const { actions, importing } = change
  if (!Array.isArray(actions) || actions.length === 0) return '.change.actions must be a list of words'
  return {
    address,
    previousAddress: previous ?? null,
    type,
    actions: new Set(actions.map(actionOf)),
    importing: isObject(importing),
    provisioned: provisioned.has(withoutKeys(address)),
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME
}

function actionOf(word: unknown): Action {
  return isAction(word) ? word : 'unknown'
}

function isAction(word: unknown): word is Action {
  return typeof word === 'string' && KNOWN.has(word)
}

/** State of collecting addresses of resources with provisioners, without instance keys. */
interface Collecting {
  readonly found: Set<string>
  readonly slices: Slices
  /** Modules around the present one. */
  readonly depth: number
}

async function collectProvisioned(plan: JsonObject, collecting: Collecting): Promise<string | null> {
  const { configuration } = plan
  if (configuration === undefined || configuration === null) return null
  if (!isObject(configuration)) return 'configuration must be an object'
  const root = configuration.root_module
  return root === undefined ? null : await collectInModule(root, '', collecting)
}

async function collectInModule(module: unknown, path: string, collecting: Collecting): Promise<string | null> {
  const { found, slices, depth } = collecting
  const at = `configuration.root_module${path === '' ? '' : ` (${path.slice(0, -1)})`}`
  if (!isObject(module) || depth > MAX_MODULE_DEPTH)
    return `${at} must be an object, in at most ${MAX_MODULE_DEPTH} modules`
  const resources = listOf(module, 'resources')
  if (typeof resources === 'string') return `${at}.${resources}`
  for (const one of resources) {
    if (slices.isOver) await slices.next()
    const { address, provisioners } = isObject(one) ? one : {}
    if (has(provisioners) && typeof address === 'string') found.add(path + address)
  }
  const { module_calls: calls = {} } = module
  if (!isObject(calls)) return `${at}.module_calls must be an object`
  for (const [name, call] of Object.entries(calls)) {
    const inner = isObject(call) ? call.module : undefined
    if (inner === undefined) continue
    if (slices.isOver) await slices.next()
    const fault = await collectInModule(inner, `${path}module.${name}.`, { ...collecting, depth: depth + 1 })
    if (fault !== null) return fault
  }
  return null
}

function has(provisioners: unknown): boolean {
  return Array.isArray(provisioners) ? provisioners.length > 0 : provisioners !== undefined && provisioners !== null
}

/** Removes instance keys: `module.a[0].aws_x.y["b.c"]` becomes `module.a.aws_x.y`. */
export function withoutKeys(address: string): string {
  if (!address.includes('[')) return address
  let plain = ''
  for (let at = 0; at < address.length; at++) {
    if (address[at] === '[') at = endOfKey(address, at)
    else plain += address[at]
  }
  return plain
}

/** Index of the bracket that closes a key. Quoted text in it may hold brackets and escaped quotes. */
function endOfKey(address: string, open: number): number {
  let quoted = false
  for (let at = open + 1; at < address.length; at++) {
    const letter = address[at]
    if (letter === '\\' && quoted) at++
    else if (letter === '"') quoted = !quoted
    else if (letter === ']' && !quoted) return at
  }
  return address.length
}
