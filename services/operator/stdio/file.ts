import { createHash } from 'node:crypto'
import type { Manifest } from '@plat/resources'
import type { StdioFile } from '@plat/resources/stdio-file'
import { type StdioPlace, stdioTokenOf } from './place.ts'

const IDLE_SECONDS = 600

/** Returns the file of the bridge of a server, without values of Secrets. */
export function stdioFileOf(server: Manifest<'MCPServer'>, place: Pick<StdioPlace, 'key'>): StdioFile {
  const { metadata, spec } = server
  const { command = '', args = [], env = [], cwd, perSession = true, idleSeconds = IDLE_SECONDS } = spec.stdio ?? {}
  const plain = env.flatMap(({ name, value, valueFrom }) => (valueFrom === undefined ? [[name, value ?? '']] : []))
  return {
    version: 1,
    key: `${metadata.namespace}/${metadata.name}`,
    argv: [command, ...args],
    env: Object.fromEntries(plain),
    secretEnv: env.flatMap(({ name, valueFrom }) => (valueFrom === undefined ? [] : [name])),
    ...(cwd !== undefined && { cwd }),
    perSession,
    idleSeconds,
    tokenDigest: createHash('sha256').update(stdioTokenOf(place, server)).digest('base64url'),
  }
}

/** A variable whose value is in a Secret. */
export interface StdioSecret {
  readonly name: string
  readonly secret: string
  readonly key: string
  /** `<namespace>/<secret>/<key>` */
  readonly from: string
  /** The field that names it. */
  readonly path: string
}

/** Secrets that the variables of a server need from its namespace. */
export function stdioSecretsOf({
  metadata: { namespace },
  spec: { stdio },
}: Manifest<'MCPServer'>): readonly StdioSecret[] {
  return (stdio?.env ?? []).flatMap(({ name, valueFrom }, index) => {
    if (valueFrom === undefined) return []
    const { name: secret, key } = valueFrom.secretKeyRef
    const path = `stdio.env[${index}].valueFrom.secretKeyRef`
    return [{ name, secret, key, from: `${namespace}/${secret}/${key}`, path }]
  })
}
