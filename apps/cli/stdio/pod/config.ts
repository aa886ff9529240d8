import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeStdioFile, STDIO_FILES, STDIO_SECRET_PREFIX, type StdioFile } from '@plat/resources/stdio-file'
import type { TlsAccess } from '../http/access.ts'
import type { ServerSpec } from '../protocol.ts'

/** Variables of the bridge alone: the operator empties them, since an image may set them for its program. */
const OWN_VARIABLES = ['NODE_OPTIONS', 'LD_PRELOAD'] as const

/** Configuration of the bridge of a pod: its server, and the access to it. */
export interface PodConfig {
  readonly server: ServerSpec
  readonly access: TlsAccess
}

/** Reads the folder that the operator has rendered. Rejects with one line that names the file. */
export async function readPodConfig(folder: string, outer: NodeJS.ProcessEnv): Promise<PodConfig> {
  const read = async (name: string) => await readFile(join(folder, name))
  const decoded = decodeStdioFile(await read(STDIO_FILES.server))
  if (!decoded.ok) throw new Error(`${join(folder, STDIO_FILES.server)}: ${decoded.problems.join('; ')}`)
  const { file } = decoded
  return {
    server: specOf(file, outer),
    access: {
      certificate: String(await read(STDIO_FILES.certificate)),
      privateKey: String(await read(STDIO_FILES.key)),
      tokenDigest: Buffer.from(file.tokenDigest, 'base64url'),
    },
  }
}

/** The program gets the variables of its image, and those of the resource. */
function specOf(
  { key, argv, env, secretEnv, cwd = process.cwd(), ...rest }: StdioFile,
  outer: NodeJS.ProcessEnv,
): ServerSpec {
  const values: Record<string, string> = {}
  for (const [name, value = ''] of Object.entries(outer))
    if (!name.startsWith(STDIO_SECRET_PREFIX) && !isEmptied(name, value)) values[name] = value
  Object.assign(values, env)
  // Editors end files with a line end.
  for (const name of secretEnv) values[name] = (outer[`${STDIO_SECRET_PREFIX}${name}`] ?? '').replace(/\r?\n$/, '')
  return {
    key,
    argv,
    env: values,
    secrets: secretEnv,
    cwd,
    perSession: rest.perSession,
    idleMs: rest.idleSeconds * 1000,
    problem: existsSync(cwd) ? null : `stdio.cwd: ${cwd} does not exist in the image`,
  }
}

function isEmptied(name: string, value: string): boolean {
  return value === '' && OWN_VARIABLES.some((own) => own === name)
}
