import { ApiFault, type KubernetesApi, member, textOf } from '@plat/kubernetes'

/** Requests for Secrets and ConfigMaps at the same time. */
const AT_ONCE = 8

/** The API server says so of what is not there, and of what the operator may not read. */
const ABSENT: ReadonlySet<number> = new Set([403, 404])

/**
 * The values of keys of Secrets or ConfigMaps, by `<namespace>/<name>/<key>`. What is not there, or may not be read, is absent; throws an
 * `ApiFault` on everything else. Each object is read once, by its name: no right to list them is needed.
 */
export async function readKeys(
  api: KubernetesApi,
  plural: 'secrets' | 'configmaps',
  wanted: Iterable<string>,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const keys = new Set(wanted)
  const objects = new Set([...keys].map((key) => key.slice(0, key.lastIndexOf('/'))))
  const found = new Map<string, string>()
  const queue = [...objects]
  const work = async () => {
    for (let object = queue.pop(); object !== undefined; object = queue.pop()) {
      for (const [name, text] of await valuesOf(api, plural, object, signal)) {
        if (keys.has(`${object}/${name}`)) found.set(`${object}/${name}`, text)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, work))
  return found
}

async function valuesOf(
  api: KubernetesApi,
  plural: 'secrets' | 'configmaps',
  object: string,
  signal: AbortSignal,
): Promise<readonly (readonly [string, string])[]> {
  const [namespace = '', name = ''] = object.split('/')
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`
  try {
    const { body } = await api.ask({ method: 'GET', path, signal })
    const data = member(body, 'data')
    return Object.keys(data).map((key) => {
      const text = textOf(data, key)
      return [key, plural === 'secrets' ? Buffer.from(text, 'base64').toString('utf8') : text]
    })
  } catch (error) {
    if (error instanceof ApiFault && ABSENT.has(error.status)) return []
    throw error
  }
}
