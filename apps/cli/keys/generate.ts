import { resolve } from 'node:path'
import { generateKeyFiles } from '@plat/keys'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'

/** Writes an Ed25519 key pair as `key.pem` (for the owner alone) and `pub.pem`, never over an existing key. */
export async function keysGenerate(
  options: { readonly dir: string; readonly format: Format },
  output: Output,
): Promise<number> {
  const { keyPath, pubPath } = await generateKeyFiles(resolve(options.dir)).catch((error: unknown) => {
    throw new CommandError(error instanceof Error ? error.message : String(error))
  })
  printObject(output, options.format, { key: keyPath, public: pubPath })
  return 0
}
