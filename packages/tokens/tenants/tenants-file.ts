import { closest, isObject, isSpiffeSegment, parseStrict } from '@plat/core'

/** Tenants at most: each has up to three keys in the key document, which verifiers bound. */
const MAX_TENANTS = 256
/** Namespaces of all tenants together: the key document lists them, and verifiers read at most 1 MiB of it. */
const MAX_NAMESPACES = 8192
/** A tenant's name is the name of its key file as well. */
const TENANT_NAME = /^(?=.{1,63}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/

/** Tenants by the namespaces that are theirs. */
export interface Tenants {
  readonly names: ReadonlySet<string>
  readonly byNamespace: ReadonlyMap<string, string>
}

export const noTenants: Tenants = { names: new Set(), byNamespace: new Map() }

/** Decodes `{"tenants": [{"name", "namespaces": […]}]}`. Returns every problem, with the path of its key, if there is one. */
export function decodeTenants(bytes: Uint8Array): Tenants | { readonly problems: readonly string[] } {
  let file: unknown
  try {
    file = parseStrict(bytes)
  } catch (error) {
    return { problems: [error instanceof Error ? error.message : 'unreadable'] }
  }
  if (!isObject(file) || !Array.isArray(file.tenants)) return { problems: ['tenants: must be a list'] }
  const problems: string[] = []
  refuseUnknown(file, '', ['tenants'], problems)
  if (file.tenants.length > MAX_TENANTS) problems.push(`tenants: more than ${MAX_TENANTS}`)
  const names = new Set<string>()
  const byNamespace = new Map<string, string>()
  for (const [index, tenant] of file.tenants.slice(0, MAX_TENANTS).entries()) {
    addTenant(tenant, `tenants[${index}]`, { names, byNamespace, problems })
  }
  if (byNamespace.size > MAX_NAMESPACES) problems.push(`tenants: more than ${MAX_NAMESPACES} namespaces`)
  return problems.length > 0 ? { problems } : { names, byNamespace }
}

/** Returns whether this can be the name of a tenant, which names files too. */
export function isTenantName(name: string): boolean {
  return TENANT_NAME.test(name)
}

interface TenantEntries {
  readonly names: Set<string>
  readonly byNamespace: Map<string, string>
  readonly problems: string[]
}

function addTenant(tenant: unknown, where: string, { names, byNamespace, problems }: TenantEntries): void {
  if (!isObject(tenant)) {
    problems.push(`${where}: must be an object`)
    return
  }
  refuseUnknown(tenant, `${where}.`, ['name', 'namespaces'], problems)
  const { name, namespaces } = tenant
  if (typeof name !== 'string' || !TENANT_NAME.test(name)) {
    problems.push(`${where}.name: must be lower-case letters, digits and "-", at most 63`)
    return
  }
  if (names.has(name)) problems.push(`${where}.name: "${name}" is listed twice`)
  names.add(name)
  if (!Array.isArray(namespaces)) {
    problems.push(`${where}.namespaces: must be a list`)
    return
  }
  for (const namespace of namespaces) {
    if (typeof namespace !== 'string' || !isSpiffeSegment(namespace)) {
      problems.push(`${where}.namespaces: an entry is not a namespace`)
    } else if (byNamespace.has(namespace)) {
      problems.push(`${where}.namespaces: "${namespace}" is in a tenant already`)
    } else byNamespace.set(namespace, name)
  }
}

function refuseUnknown(value: object, prefix: string, known: readonly string[], problems: string[]): void {
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue
    const meant = closest(name, known)
    problems.push(`${prefix}${name}: unknown key${meant === null ? '' : `; did you mean "${meant}"?`}`)
  }
}
