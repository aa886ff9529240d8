import { type ScalarTag, stringify, type ToStringOptions } from 'yaml'
import { BAD_CHARACTER, readPlain } from './plain.ts'

/** Matches plain scalars that `readYaml` does not parse as strings, so that such strings are quoted. */
class NotString extends RegExp {
  override test(text: string): boolean {
    return text.startsWith('?') || readPlain(text).type !== 'string'
  }
}

const notString: ScalarTag = { tag: 'not-a-string', default: true, test: new NotString(''), resolve: (text) => text }

/** Writes YAML that `readYaml`, and every parser of YAML 1.1 or 1.2, reads as the same value. */
export function writeYaml(value: unknown, options: ToStringOptions = {}): string {
  const written = write(value, options)
  if (!BAD_CHARACTER.test(written)) return written
  // Only double quotes allow escapes.
  return write(value, { ...options, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'QUOTE_DOUBLE' }).replace(
    new RegExp(BAD_CHARACTER, 'gu'),
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function write(value: unknown, options: ToStringOptions): string {
  return stringify(value, {
    ...options,
    version: '1.1',
    aliasDuplicateObjects: false,
    customTags: (tags) => [...tags, notString],
  })
}
