import { isDomain } from '@plat/resources/domains'
import { type Decoded, decodeRendered, type UpstreamsFile, upstreamsFileSchema } from '@plat/resources/rendered'
import { authOf } from './auth.ts'

/** Decodes an upstreamsFile strictly. */
export function decodeUpstreams(bytes: Uint8Array): Decoded<UpstreamsFile> {
  const decoded = decodeRendered(upstreamsFileSchema, bytes, () => [])
  if (!decoded.ok) return decoded
  const problems = misnamed(decoded.file)
  return problems.length > 0 ? { ok: false, problems } : decoded
}

const SERVER_KEY = /^[^/]+\/[^/]+$/
const BINDING_KEY = /^[^/]+\/[^/]+\/[^/]+$/

function misnamed(file: UpstreamsFile): string[] {
  const out: string[] = []
  const filed = new Map<string, { readonly key: string; readonly auth: string }>()
  for (const [key, { url, auth }] of Object.entries(file.servers)) {
    if (!URL.canParse(url)) out.push(`servers[${key}].url: not a URL`)
    const auths = authOf(auth, url)
    const how = typeof auths !== 'string' && auths.type === 'perUser' ? auths.mtls : auths
    if (typeof how === 'string') out.push(`servers[${key}].auth${how}`)
    else if (how !== null && 'credentialKey' in how) {
      const mine = { key, auth: JSON.stringify(how) }
      const first = filed.getOrInsert(how.credentialKey, mine)
      // One set of files cannot be used for two types of auth.
      if (first.auth !== mine.auth) {
        out.push(`servers[${key}].auth.credentialKey: servers[${first.key}] has the same one with another auth`)
      }
    }
    if (!SERVER_KEY.test(key)) out.push(`servers[${key}]: must read <namespace>/<name>`)
    else if (key.includes('/plat-')) out.push(`servers[${key}]: names that begin with "plat-" are built in`)
  }
  for (const key of Object.keys(file.bindings)) {
    if (!BINDING_KEY.test(key)) out.push(`bindings[${key}]: must read <namespace>/<agent>/<server>`)
  }
  for (const key of Object.keys(file.agentClients ?? {})) {
    if (!SERVER_KEY.test(key)) out.push(`agentClients[${key}]: must read <namespace>/<agent>`)
  }
  for (const [key, { allowedDomains = [], deniedDomains = [], browser }] of Object.entries(file.agentWeb)) {
    if (!SERVER_KEY.test(key)) out.push(`agentWeb[${key}]: must read <namespace>/<agent>`)
    const named = [...allowedDomains, ...deniedDomains, ...(browser?.allowedDomains ?? [])]
    const strange = named.filter((domain) => !isDomain(domain))
    out.push(...strange.map((domain) => `agentWeb[${key}]: ${JSON.stringify(domain)} is not a domain`))
  }
  return out
}
