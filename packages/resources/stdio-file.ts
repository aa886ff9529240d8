/** The file that the operator renders for the bridge of a stdio server on a cluster: one schema gives the writer's type and the reader's decoder. */
import { type Static, Type } from 'typebox'
import { mapOf } from './check.ts'
import { type Decoded, decodeRendered } from './rendered.ts'

/** Names of the files in the folder that a bridge reads. */
export const STDIO_FILES = { server: 'server.json', certificate: 'tls.crt', key: 'tls.key' } as const

/** Begins the names of variables with values of Secrets, so that none of them configures the bridge itself. */
export const STDIO_SECRET_PREFIX = 'PLAT_STDIO_SECRET_'

const stdioFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    /** `<namespace>/<name>` of the MCPServer: the path of the URL. */
    key: Type.String({ pattern: '^[^/]+/[^/]+$' }),
    /** Program and arguments. */
    argv: Type.Array(Type.String(), { minItems: 1 }),
    /** Variables beside those of the image. */
    env: mapOf(Type.String()),
    /** Names of variables whose values are in variables of the bridge that begin with `STDIO_SECRET_PREFIX`. */
    secretEnv: Type.Array(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
    /** Working directory; absent: that of the image. */
    cwd: Type.Optional(Type.String({ pattern: '^/' })),
    perSession: Type.Boolean(),
    idleSeconds: Type.Integer({ minimum: 1 }),
    /** SHA-256 of the token that the gateway presents, in base64url. */
    tokenDigest: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
  },
  { additionalProperties: false },
)

export type StdioFile = Static<typeof stdioFileSchema>

/** Decodes the file strictly. */
export function decodeStdioFile(bytes: Uint8Array): Decoded<StdioFile> {
  return decodeRendered(stdioFileSchema, bytes, () => [])
}
