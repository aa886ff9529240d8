import type { Manifest } from '@plat/resources'
import { isWrittenHeader } from '@plat/resources/rendered'
import { isBelow } from '../openapi/source.ts'
import { pinProblems } from '../render/pins.ts'
import { checked, fileNames, type Problem, RESERVED_PREFIX, reservedName, urlProblem } from './problem.ts'

export function serverProblems(server: Manifest<'MCPServer'>): Problem[] {
  return checked(() => problemsOfServer(server))
}

function problemsOfServer({ metadata, spec }: Manifest<'MCPServer'>): Problem[] {
  const problems: Problem[] = []
  if (metadata.name.startsWith(RESERVED_PREFIX)) problems.push(reservedName('metadata.name'))
  const url = spec.url === undefined ? null : urlProblem('url', spec.url)
  if (url !== null) problems.push(url)
  if (spec.auth !== undefined) problems.push(...authProblems(spec.auth, spec.url ?? ''))
  if (spec.openapi !== undefined) problems.push(...openapiProblems(spec.openapi, spec.url ?? ''))
  if (spec.stdio !== undefined) problems.push(...stdioProblems(spec, spec.stdio))
  if (spec.caBundleRef !== undefined) problems.push(...fileNames('caBundleRef', spec.caBundleRef))
  if (spec.toolPins !== undefined) problems.push(...pinProblems('toolPins', spec.toolPins))
  problems.push(...labelProblems(spec.toolLabels ?? {}))
  for (const [index, namespace] of (spec.allowedNamespaces ?? []).entries()) {
    if (spec.shared === true && !NAMESPACE.test(namespace))
      problems.push({ path: `allowedNamespaces[${index}]`, why: 'must be the name of a namespace' })
  }
  return problems
}

type Spec = Manifest<'MCPServer'>['spec']

/** Problems of `stdio`: what only a server with a URL can have, and texts that no system accepts. */
function stdioProblems(
  { auth, caBundleRef }: Spec,
  { command, args = [], env = [], cwd = '' }: NonNullable<Spec['stdio']>,
) {
  const problems: Problem[] = []
  if ((auth?.type ?? 'none') !== 'none' || auth?.perUser === true)
    problems.push({ path: 'auth.type', why: 'needs a url; a stdio server gets its secrets by stdio.env' })
  if (caBundleRef !== undefined) problems.push({ path: 'caBundleRef', why: 'needs a url' })
  const texts = { command, cwd, ...Object.fromEntries(args.map((arg, index) => [`args[${index}]`, arg])) }
  for (const [name, text] of Object.entries(texts))
    if (text.includes('\0')) problems.push({ path: `stdio.${name}`, why: NO_NUL })
  for (const [index, { value = '', valueFrom }] of env.entries()) {
    const at = `stdio.env[${index}]`
    if (value.includes('\0')) problems.push({ path: `${at}.value`, why: NO_NUL })
    if (valueFrom !== undefined) problems.push(...fileNames(`${at}.valueFrom.secretKeyRef`, valueFrom.secretKeyRef))
  }
  return problems
}

/** Problems of `openapi`: files outside the directory, and a base that no path can be added to. */
function openapiProblems(
  { file, configMapRef, documentURL }: NonNullable<Spec['openapi']>,
  base: string,
): readonly Problem[] {
  const problems: Problem[] = []
  if (/[?#]/.test(base)) problems.push({ path: 'url', why: 'with openapi it is the base of paths: without ? and #' })
  if (file !== undefined && !isBelow(file))
    problems.push({ path: 'openapi.file', why: 'must be a path below the directory of plat up' })
  if (configMapRef !== undefined) problems.push(...fileNames('openapi.configMapRef', configMapRef))
  const url = documentURL === undefined ? null : urlProblem('openapi.documentURL', documentURL)
  return url === null ? problems : [...problems, url]
}

const NO_NUL = 'must not contain the character NUL'

const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/** Tokens carry labels separated by spaces; and what every label stands for is not a label itself. */
const LABEL = /^(?!\*$)[\x21-\x7e]+$/

function labelProblems(toolLabels: NonNullable<Manifest<'MCPServer'>['spec']['toolLabels']>): Problem[] {
  const problems: Problem[] = []
  for (const [tool, { taints = [], clearTaints = [], sinks = [] }] of Object.entries(toolLabels)) {
    const named = { taints, clearTaints: clearTaints.filter((label) => label !== '*'), sinks }
    for (const [part, labels] of Object.entries(named)) {
      const why = 'a label is printable ASCII without spaces, and * stands for all only in clearTaints'
      if (!labels.every((label) => LABEL.test(label))) problems.push({ path: `toolLabels[${tool}].${part}`, why })
    }
  }
  return problems
}

type Auth = NonNullable<Manifest<'MCPServer'>['spec']['auth']>

/** Problems of `auth` that the schema cannot express and the gateway would refuse. */
function authProblems({ type, secretRef, headerName, oauth, mtls }: Auth, url: string): Problem[] {
  const problems: Problem[] = []
  if (headerName !== undefined && isWrittenHeader(headerName)) {
    problems.push({ path: 'auth.headerName', why: 'the gateway writes this header itself' })
  }
  if (type === 'mtls' && !url.startsWith('https://')) {
    problems.push({ path: 'auth.type', why: 'mtls needs a url that begins with https://' })
  }
  if (secretRef !== undefined) problems.push(...fileNames('auth.secretRef', secretRef))
  if (mtls !== undefined) problems.push(...fileNames('auth.mtls.certSecretRef', mtls.certSecretRef))
  if (oauth === undefined) return problems
  const tokenURL = urlProblem('auth.oauth.tokenURL', oauth.tokenURL)
  return [
    ...problems,
    ...(tokenURL === null ? [] : [tokenURL]),
    ...fileNames('auth.oauth.clientIdRef', oauth.clientIdRef),
    ...fileNames('auth.oauth.clientSecretRef', oauth.clientSecretRef),
  ]
}
