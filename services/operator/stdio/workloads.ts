import { canonicalJson } from '@plat/core'
import type { Resource } from '@plat/resources'
import { keyOf, type ReferencedTexts } from '../render/declared.ts'
import { problemLine } from '../validate/problem.ts'
import { stdioFileOf, stdioSecretsOf } from './file.ts'
import { type ClusterObject, stdioObjectsOf } from './objects.ts'
import { type StdioPlace, stdioCertificateOf, stdioDigestOf } from './place.ts'

type Server = Resource<'MCPServer'>

/** Largest value of a Secret, in bytes: Linux passes no larger variable to a program. */
const VALUE_MAX_BYTES = 127 * 1024

/** The objects in which a server runs. */
export interface Workload {
  readonly server: Server
  readonly objects: readonly ClusterObject[]
  /** Of all objects. */
  readonly digest: string
}

export interface Workloads {
  /** By `<namespace>/<name>`; null: a Secret is missing, and what runs stays as it is. */
  readonly byKey: ReadonlyMap<string, Workload | null>
  readonly refused: readonly string[]
}

/** Renders the objects of stdio servers. `servers`: those without problems. */
export function renderWorkloads(
  servers: readonly Server[],
  { place, home, secrets }: { readonly place: StdioPlace; readonly home: string; readonly secrets: ReferencedTexts },
): Workloads {
  const byKey = new Map<string, Workload | null>()
  const refused: string[] = []
  for (const server of servers) {
    const problems = secretProblems(server, secrets)
    refused.push(...problems.map((problem) => problemLine(server, problem)))
    if (problems.length > 0) byKey.set(keyOf(server), null)
    else {
      const objects = stdioObjectsOf(server, place, { home, digest: digestOf(server, place, secrets) })
      byKey.set(keyOf(server), { server, objects, digest: stdioDigestOf(place, canonicalJson(objects)) })
    }
  }
  return { byKey, refused }
}

function digestOf(server: Server, place: StdioPlace, { texts }: ReferencedTexts): string {
  const values = stdioSecretsOf(server).map(({ name, from }) => [name, texts.get(from) ?? ''])
  const { certificate } = stdioCertificateOf(place, server)
  return stdioDigestOf(place, JSON.stringify([stdioFileOf(server, place), values, certificate]))
}

function secretProblems(server: Server, { texts, withheld }: ReferencedTexts) {
  return stdioSecretsOf(server).flatMap(({ from, path }) => {
    const text = texts.get(from)
    const why = withheld.get(from)
    const later = 'the server is not started with it'
    if (text === undefined)
      return [{ path, why: why === undefined ? `no Secret ${from}: ${later}` : `Secret ${from} ${why}: ${later}` }]
    if (text.includes('\0')) return [{ path, why: `Secret ${from} contains the character NUL: ${later}` }]
    const bytes = Buffer.byteLength(text)
    return bytes > VALUE_MAX_BYTES
      ? [{ path, why: `Secret ${from} has ${bytes} bytes, more than ${VALUE_MAX_BYTES}` }]
      : []
  })
}
