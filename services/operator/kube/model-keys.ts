import { type Declared, keyOf, type ReferencedTexts } from '../render/declared.ts'
import { type ModelKey, modelKeys } from '../render/models.ts'
import { CONFIG_MAP_BYTES } from '../render/size/packed.ts'
import { OVER_SHARE, piecesOverShare } from '../render/size/shares.ts'
import { problemLine } from '../validate/problem.ts'

/** `<namespace>.<agent>.<place>`: neither namespaces nor agents have dots in their names. */
export function fileOfKey({ namespace, agent, place }: ModelKey): string {
  return `${namespace}.${agent}.${place}`
}

/** `<namespace>/<secret>/<key>` */
export function secretOf({ namespace, secret }: ModelKey): string {
  return `${namespace}/${secret.name}/${secret.key}`
}

/** The keys of models as files that the gateway mounts (docs/spec/crds.md, `apiKeySecretRef`): copied for it alone, into one Secret. */
export function renderModelKeys(declared: Declared, { texts, withheld }: ReferencedTexts) {
  const files = new Map<string, string>()
  const refused: string[] = []
  const agents = new Map(declared.agents.map((agent) => [keyOf(agent), agent]))
  const keys = modelKeys(declared)
  const over = piecesOverShare(
    keys.map((key) => ({
      key: fileOfKey(key),
      namespace: key.namespace,
      bytes: Buffer.byteLength(texts.get(secretOf(key)) ?? ''),
    })),
    CONFIG_MAP_BYTES,
  )
  for (const key of keys) {
    const from = secretOf(key)
    const text = texts.get(from)
    const agent = agents.get(`${key.namespace}/${key.agent}`)
    const isOver = over.has(fileOfKey(key))
    if (text !== undefined && !isOver) files.set(fileOfKey(key), text)
    else if (agent !== undefined) {
      const path = key.place.replace(/^fallback-(\d+)$/, 'model.fallbacks[$1]')
      const why = isOver ? OVER_SHARE : withheld.get(from)
      const cause = why === undefined ? `no Secret ${from}` : `Secret ${from} ${why}`
      refused.push(
        problemLine(agent, { path: `${path}.apiKeySecretRef`, why: `${cause}: calls of this endpoint are refused` }),
      )
    }
  }
  return { files, refused }
}
