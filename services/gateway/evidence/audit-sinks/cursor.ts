import { open, readFile, rename } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

const schema = Type.Object(
  { version: Type.Literal(1), seq: Type.Integer({ minimum: 0 }), hash: Type.String({ pattern: '^[0-9a-f]{64}$' }) },
  { additionalProperties: false },
)

/** The last record that a sink has finished. */
export type DeliveredPosition = Pick<Static<typeof schema>, 'seq' | 'hash'>

const FILE_MODE = 0o600

/** Reads the position of a sink; null if it has delivered nothing. Throws for an invalid file. */
export async function readCursor(path: string): Promise<DeliveredPosition | null> {
  let value: unknown
  try {
    value = JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if (isMissing(error)) return null
    if (!(error instanceof SyntaxError)) throw error
  }
  if (Check(schema, value)) return value
  throw new Error(`${path} holds no place in a ledger`)
}

/**
 * Writes the position atomically. The folder is not synced: after a power failure an older position may return, which repeats some
 * records and loses none.
 */
export async function writeCursor(path: string, { seq, hash }: DeliveredPosition): Promise<void> {
  const temporary = `${path}.tmp`
  {
    await using file = await open(temporary, 'w', FILE_MODE)
    await file.writeFile(`${JSON.stringify({ version: 1, seq, hash })}\n`)
    await file.datasync()
  }
  await rename(temporary, path)
}
