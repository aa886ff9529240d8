import { isObject } from '@plat/core'
import { type Members, member, textOf } from '@plat/kubernetes'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { isStop } from '../proof/parts/verdict.ts'
import type { Chain } from './chain.ts'
import { type KubernetesObject, watched } from './objects.ts'
import { denied, NotReadyError, unavailable } from './refusals.ts'

/** ConfigMaps and Secrets that one Agent's variables may come from. */
const MAX_OBJECTS = 32

export interface EnvironmentParts {
  readonly api: ClusterApi
  readonly namespace: string
  readonly chain: Chain
  readonly agent: KubernetesObject
}

/**
 * Resolves the variables that an Agent and its session set (docs/spec/crds.md, `env`). A pod that waited in a pool started without them, so what a
 * kubelet would have resolved is resolved here. A value that cannot be known outside the pod is refused, since a silently missing variable would be
 * worse. Throws the contract's refusals.
 */
export async function variablesOf(parts: EnvironmentParts): Promise<Readonly<Record<string, string>>> {
  const { agent, chain } = parts
  const entries: readonly unknown[] = Array.isArray(agent.spec.env) ? agent.spec.env : []
  const sources = new Sources(parts)
  const known = new Map<string, string>()
  for (const entry of entries.filter(isObject)) {
    const name = textOf(entry, 'name')
    const value =
      'valueFrom' in entry ? await sources.valueOf(name, member(entry, 'valueFrom')) : expanded(entry, known)
    if (value !== null) known.set(name, value)
  }
  return { ...Object.fromEntries(known), ...textsOf(member(chain.session.status, 'env')) }
}

/** `$(NAME)` is an earlier variable's value, `$$` is a dollar sign, and what names no variable stays. */
function expanded(entry: Members, known: ReadonlyMap<string, string>): string {
  const text = textOf(entry, 'value')
  const lastEnd = text.lastIndexOf(')')
  let result = ''
  let at = 0
  for (let dollar = text.indexOf('$'); dollar >= 0; dollar = text.indexOf('$', at)) {
    result += text.slice(at, dollar)
    const next = text[dollar + 1]
    if (next === '(' && dollar < lastEnd) {
      at = text.indexOf(')', dollar) + 1
      result += known.get(text.slice(dollar + 2, at - 1)) ?? text.slice(dollar, at)
    } else {
      at = dollar + (next === '$' ? 2 : 1)
      result += '$'
    }
  }
  return result + text.slice(at)
}

/** Sources of values for one bootstrap: no object is read twice. */
class Sources {
  readonly #parts: EnvironmentParts
  /** By path; null for objects that do not exist. */
  readonly #objects = new Map<string, Members | null>()

  constructor(parts: EnvironmentParts) {
    this.#parts = parts
  }

  /** Null for what is optional and not there. */
  async valueOf(variable: string, source: Members): Promise<string | null> {
    const [kind = ''] = Object.keys(source)
    const reference = member(source, kind)
    if (kind === 'fieldRef') return this.#field(variable, textOf(reference, 'fieldPath'))
    if (kind === 'configMapKeyRef') return this.#key(variable, 'configmaps', reference)
    if (kind === 'secretKeyRef') {
      if (isModelKey(this.#parts.agent, reference)) {
        throw denied(`the variable ${variable} of the Agent names the key of its model, which never reaches a sandbox`)
      }
      return this.#key(variable, 'secrets', reference)
    }
    throw denied(`the variable ${variable} of the Agent comes by ${kind}, which a pod of a warm pool cannot be given`)
  }

  #field(variable: string, path: string): string {
    const { pod } = this.#parts.chain
    const [, map, key = ''] = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(path) ?? []
    if (map !== undefined) return textOf(member(member(pod, 'metadata'), map), key)
    const read = Object.hasOwn(FIELDS, path) ? FIELDS[path] : undefined
    if (read === undefined) throw denied(`the variable ${variable} of the Agent names a field that pods do not have`)
    return read(pod)
  }

  async #key(variable: string, plural: 'configmaps' | 'secrets', reference: Members): Promise<string | null> {
    const { namespace, chain } = this.#parts
    const [name, key] = [textOf(reference, 'name'), textOf(reference, 'key')]
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`
    const object = name === '' ? null : await this.#read(path, variable)
    const data = object === null ? {} : member(object, 'data')
    if (typeof data[key] === 'string') return plural === 'secrets' ? secretText(variable, data[key]) : data[key]
    if (reference.optional === true) return null
    throw new NotReadyError(
      'not_prepared',
      `the source of the variable ${variable} of the Agent does not exist`,
      watched(chain.session),
    )
  }

  async #read(path: string, variable: string): Promise<Members | null> {
    const known = this.#objects.get(path)
    if (known !== undefined) return known
    if (this.#objects.size >= MAX_OBJECTS)
      throw denied(`the Agent's variables come from more than ${MAX_OBJECTS} objects`)
    const answer = await this.#parts.api.ask({ method: 'GET', path })
    if (isStop(answer)) throw unavailable(answer.reason)
    if (answer.status === 403) throw unavailable(`the broker may not read what the variable ${variable} comes from`)
    if (answer.status !== 200 && answer.status !== 404) {
      throw unavailable(`the API server answers for the variable ${variable} with status ${answer.status}`)
    }
    const object = answer.status === 200 ? answer.body : null
    this.#objects.set(path, object)
    return object
  }
}

/** docs/spec/crds.md, `apiKeySecretRef`: that key is the gateway's alone. */
function isModelKey({ spec }: KubernetesObject, { name, key }: Members): boolean {
  const model = member(spec, 'model')
  const fallbacks: readonly unknown[] = Array.isArray(model.fallbacks) ? model.fallbacks : []
  return [model, ...fallbacks].filter(isObject).some((endpoint) => {
    const secret = member(endpoint, 'apiKeySecretRef')
    return secret.name === name && secret.key === key
  })
}

/** A Secret's value as a variable: its bytes must be text. */
function secretText(variable: string, value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, 'base64'))
  } catch {
    throw denied(`the variable ${variable} of the Agent comes from a Secret that is not text`)
  }
}

/** Fields of a pod that a variable may be (docs/spec/crds.md, `fieldRef`), besides labels and annotations. */
const FIELDS: Readonly<Record<string, (pod: Members) => string>> = {
  'metadata.name': (pod) => textOf(member(pod, 'metadata'), 'name'),
  'metadata.namespace': (pod) => textOf(member(pod, 'metadata'), 'namespace'),
  'spec.nodeName': (pod) => textOf(member(pod, 'spec'), 'nodeName'),
  'spec.serviceAccountName': (pod) => textOf(member(pod, 'spec'), 'serviceAccountName'),
  'status.hostIP': (pod) => textOf(member(pod, 'status'), 'hostIP'),
  'status.podIP': (pod) => textOf(member(pod, 'status'), 'podIP'),
  'status.podIPs': (pod) => {
    const { podIPs } = member(pod, 'status')
    const addresses: readonly unknown[] = Array.isArray(podIPs) ? podIPs : []
    return addresses.map((each) => (isObject(each) ? textOf(each, 'ip') : '')).join(',')
  },
}

function textsOf(members: Members): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}
