import type { Problem, Rule } from '@plat/config'
import { isObject, type JsonObject } from '@plat/core'
import { keyProblems } from '../../call/key-problems.ts'

/** Rules that the schema of `tokenVault` cannot express. A disabled vault is not checked. */
export const vaultRules: readonly Rule[] = [
  whenOn(keysOpen),
  whenOn(loginIsThere),
  whenOn(baseIsThere),
  whenOn(issuersAreTrusted),
  whenOn(providersAreWhole),
]

function whenOn(rule: (vault: JsonObject, file: JsonObject) => readonly (Problem | null)[]): Rule {
  return (vault, file) => (vault.enabled === true ? rule(vault, file).filter((problem) => problem !== null) : [])
}

const PATH = 'tokenVault'

function error(path: string, message: string): Problem {
  return { path: `${PATH}.${path}`, message, severity: 'error' }
}

function keysOpen({ keyURI, retiredKeyURIs }: JsonObject): readonly Problem[] {
  return [
    ...keyProblems(`${PATH}.keyURI`, String(keyURI), 'encrypt'),
    ...list(retiredKeyURIs).flatMap((uri, index) =>
      keyProblems(`${PATH}.retiredKeyURIs[${index}]`, String(uri), 'encrypt'),
    ),
  ]
}

function loginIsThere({ login }: JsonObject): (Problem | null)[] {
  const why = 'is required with tokenVault.enabled: it says whose account is connected'
  return ['issuer', 'clientID'].map((key) => (members(login)[key] === '' ? error(`login.${key}`, why) : null))
}

/** Redirect base of authorization servers. A Host header would be controlled by the browser. */
function baseIsThere({ publicBaseURL }: JsonObject, { identity }: JsonObject): (Problem | null)[] {
  const base = String(publicBaseURL) || String(members(identity).resourceBaseURL ?? '')
  if (base === '')
    return [error('publicBaseURL', 'this or identity.resourceBaseURL is required with tokenVault.enabled')]
  const { search, hash, username } = new URL(base)
  return [
    search + hash + username === ''
      ? null
      : error('publicBaseURL', 'must be a bare address, without query or credentials'),
  ]
}

function issuersAreTrusted({ externalUserIssuers }: JsonObject, { identity }: JsonObject): (Problem | null)[] {
  const trusted = new Set(list(members(identity).trustedIssuers).map((issuer) => members(issuer).issuer))
  return list(externalUserIssuers).map((issuer, index) =>
    trusted.has(issuer) ? null : error(`externalUserIssuers[${index}]`, 'is the issuer of no identity.trustedIssuers'),
  )
}

/** Parameters that the gateway sets in authorization requests. */
const OWN_PARAMETERS = [
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'redirect_uri',
  'request',
  'request_uri',
  'resource',
  'response_mode',
  'response_type',
  'scope',
  'state',
]

function providersAreWhole({ providers }: JsonObject): (Problem | null)[] {
  return list(providers).flatMap((one, index) => {
    const provider = members(one)
    const at = `providers[${index}]`
    const reserved = OWN_PARAMETERS.filter((name) => Object.hasOwn(members(provider.extraAuthParams), name))
    return [
      provider.name === 'callback' ? error(`${at}.name`, 'is an address of the gateway itself') : null,
      provider.clientID === '' ? error(`${at}.clientID`, 'is required') : null,
      serverProblem(provider, at),
      endpointProblem(provider, at),
      ...assertionProblems(provider, at),
      ...reserved.map((name) => error(`${at}.extraAuthParams.${name}`, 'is set by the gateway')),
    ]
  })
}

/** Without an allowlist anyone who can create an MCPServer could collect user tokens. */
function serverProblem({ allowedServers, allowAnyServer }: JsonObject, at: string): Problem | null {
  const servers = list(allowedServers)
  if (servers.length === 0 && allowAnyServer !== true) {
    return error(`${at}.allowedServers`, 'is required unless allowAnyServer is set: <namespace>/<name> of MCPServers')
  }
  const odd = servers.findIndex((server) => !/^[^/]+\/[^/]+$/.test(String(server)))
  return odd === -1 ? null : error(`${at}.allowedServers[${odd}]`, 'must read <namespace>/<name>')
}

function endpointProblem(
  { preset, issuer, authorizationURL, tokenURL, grant }: JsonObject,
  at: string,
): Problem | null {
  if (preset !== 'generic' || issuer !== '') return null
  const isWhole = tokenURL !== '' && (authorizationURL !== '' || grant === 'id-jag')
  return isWhole ? null : error(at, 'preset generic needs an issuer, or authorizationURL and tokenURL')
}

/** The draft "Identity Assertion JWT Authorization Grant" requires confidential clients and one issuer. */
function assertionProblems({ grant, issuer, idJag, clientSecretFile }: JsonObject, at: string): (Problem | null)[] {
  if (grant !== 'id-jag') return []
  const { audience } = members(idJag)
  return [
    audience === '' && issuer === ''
      ? error(`${at}.idJag.audience`, 'this or issuer is required with grant id-jag')
      : null,
    clientSecretFile === '' ? error(`${at}.clientSecretFile`, 'is required with grant id-jag') : null,
  ]
}

function members(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
