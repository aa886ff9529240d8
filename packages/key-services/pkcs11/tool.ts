import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readText } from '@plat/config'

/** Program of OpenSC, found on the PATH. */
const TOOL = 'pkcs11-tool'
/** Time limit of one run, in milliseconds. */
const RUN_MS = 6_000
/** Largest output of one run, in bytes. */
export const MAX_OUTPUT_BYTES = 256 * 1024
const MAX_PIN_BYTES = 1024
/** Variable of `pkcs11-tool` that holds the PIN: arguments of a process are public on its machine. */
const PIN_VARIABLE = 'PLAT_PKCS11_TOOL_PIN'

/** An operation that the token or the key does not permit: it fails the same way again. */
export class RefusedError extends Error {
  /** Return value of PKCS#11, such as `CKR_PIN_INCORRECT`; empty if there is none. */
  readonly code: string

  constructor(message: string, code = '') {
    super(message)
    this.name = 'RefusedError'
    this.code = code
  }
}

/** A failure that may pass. */
export class ToolError extends Error {
  /** Return value of PKCS#11, such as `CKR_GENERAL_ERROR`; empty if there is none. */
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.name = 'ToolError'
    this.code = code
  }
}

export interface ToolOptions {
  readonly modulePath: string
  /** Path of the file that holds the PIN; null: `PLAT_PKCS11_PIN`. */
  readonly pinFile: string | null
  readonly env: NodeJS.ProcessEnv
}

/** Return values that repeat until a person changes something. */
const FINAL =
  /CKR_(?:PIN_\w+|USER_PIN_\w+|KEY_TYPE_INCONSISTENT|KEY_FUNCTION_NOT_PERMITTED|KEY_SIZE_RANGE|MECHANISM_INVALID|MECHANISM_PARAM_INVALID|FUNCTION_NOT_SUPPORTED|ENCRYPTED_DATA_INVALID|ENCRYPTED_DATA_LEN_RANGE|DATA_INVALID|DATA_LEN_RANGE|OBJECT_HANDLE_INVALID)/

/** PINs that a token has refused, as hashes: each further attempt could lock the token. */
const refusedPins = new Set<string>()

/** Runs `pkcs11-tool` with a login. Returns its output. Throws `RefusedError`, or `ToolError` for what may pass. */
export async function runTool(options: ToolOptions, args: readonly string[], input?: Uint8Array): Promise<Buffer> {
  const pin = await pinOf(options)
  const mark = createHash('sha256')
    .update(`${options.modulePath}\0${args.slice(0, 2).join(' ')}\0${pin}`)
    .digest('hex')
  if (refusedPins.has(mark))
    throw new RefusedError('the token refused this PIN before: change the PIN file', 'CKR_PIN_INCORRECT')
  const login = ['--module', options.modulePath, ...args, '--login', '--pin', `env:${PIN_VARIABLE}`]
  try {
    return await execute(login, { ...options.env, [PIN_VARIABLE]: pin }, input)
  } catch (error) {
    if (error instanceof RefusedError && error.code.startsWith('CKR_PIN_')) refusedPins.add(mark)
    throw error
  }
}

/** Runs `pkcs11-tool` without a login. */
export function runPublic({ modulePath, env }: ToolOptions, args: readonly string[]): Promise<Buffer> {
  return execute(['--module', modulePath, ...args], env)
}

async function pinOf({ pinFile, env }: ToolOptions): Promise<string> {
  const file = pinFile ?? env.PLAT_PKCS11_PIN_FILE
  const pin = file ? (await readText(file, MAX_PIN_BYTES))?.trim() : env.PLAT_PKCS11_PIN
  if (pin) return pin
  throw new RefusedError(
    file ? `${file}: holds no PIN that can be read` : 'no PIN: set pin-source or PLAT_PKCS11_PIN_FILE',
  )
}

function execute(args: readonly string[], env: NodeJS.ProcessEnv, input?: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(TOOL, args, {
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: RUN_MS,
      killSignal: 'SIGKILL',
    })
    const output: Buffer[] = []
    let size = 0
    let errors = ''
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_OUTPUT_BYTES) child.kill('SIGKILL')
      else output.push(chunk)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString('utf8')).slice(-4096)
    })
    child.on('error', (error) => {
      const isMissing = 'code' in error && error.code === 'ENOENT'
      reject(isMissing ? new RefusedError('pkcs11-tool is not installed (Debian: opensc)') : error)
    })
    child.on('close', (code) => (code === 0 ? resolve(Buffer.concat(output)) : reject(failureOf(errors))))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

/** Repeats only return values of PKCS#11 and known texts: other output could have anything in it. */
function failureOf(errors: string): Error {
  const [line = ''] = errors
    .split('\n')
    .filter((text) => text.includes('error: ') && text.includes('CKR_'))
    .slice(-1)
  const [code = ''] = /CKR_[A-Z_]+/.exec(line) ?? []
  if (FINAL.test(code)) return new RefusedError(`the token refused: ${code}`, code)
  if (/error: (?:Private|Public|Secret) key not found/i.test(errors))
    return new RefusedError('the token has no such key')
  if (/Mechanism \S+ illegal or not supported/.test(errors)) return new RefusedError('pkcs11-tool lacks the mechanism')
  return new ToolError(
    code === '' ? 'pkcs11-tool failed: the module or the token is not available' : `the token failed: ${code}`,
    code,
  )
}
