import { RestError } from './error.ts'

/** Members that a selector reads. */
export interface Selected {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly labels?: Readonly<Record<string, string>>
  }
}

/** Returns whether a selector matches an object. */
export type Selector = (object: Selected) => boolean

/** Longest selector that is read, in characters. */
const SELECTOR_MAX_CHARS = 8192

const NAME = '[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?'
const VALUE = '(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?'
const EXISTS = new RegExp(`^(!?)\\s*(${NAME})$`)
const EQUALS = new RegExp(`^(${NAME})\\s*(==|=|!=)\\s*(${VALUE})$`)
const AMONG = new RegExp(`^(${NAME})\\s+(in|notin)\\s*\\(([^()]*)\\)$`)
const IS_VALUE = new RegExp(`^${VALUE}$`)

/** Parses a label selector: `a=b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a`, `!a`, joined by commas. An empty one matches everything. Throws 400. */
export function labelSelector(text: string): Selector {
  if (text.length > SELECTOR_MAX_CHARS) throw refused('label', `longer than ${SELECTOR_MAX_CHARS} characters`)
  const terms = termsOf(text).map(labelTerm)
  return (object) => terms.every((term) => term(object.metadata.labels ?? {}))
}

/** Splits at commas outside parentheses. */
function termsOf(text: string): readonly string[] {
  if (text.trim() === '') return []
  const terms: string[] = []
  let start = 0
  let isInside = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '(' || char === ')') isInside = char === '('
    if (char !== ',' || isInside) continue
    terms.push(text.slice(start, at).trim())
    start = at + 1
  }
  return [...terms, text.slice(start).trim()]
}

type Labels = Readonly<Record<string, string>>

function labelTerm(term: string): (labels: Labels) => boolean {
  const exists = EXISTS.exec(term)
  if (exists !== null) {
    const [, not, name = ''] = exists
    return (labels) => Object.hasOwn(labels, name) === (not === '')
  }
  const equals = EQUALS.exec(term)
  if (equals !== null) {
    const [, name = '', operator, value = ''] = equals
    return among(name, new Set([value]), operator !== '!=')
  }
  const [, name = '', operator, list = ''] = AMONG.exec(term) ?? []
  const values = list.split(',').map((value) => value.trim())
  if (name === '' || !values.every((value) => IS_VALUE.test(value))) throw refused('label', `cannot read "${term}"`)
  return among(name, new Set(values), operator === 'in')
}

/** A missing label is in no set. */
function among(name: string, values: ReadonlySet<string>, wanted: boolean): (labels: Labels) => boolean {
  return (labels) => {
    const value = Object.hasOwn(labels, name) ? labels[name] : undefined
    return (value !== undefined && values.has(value)) === wanted
  }
}

const FIELD = /^([^=!]+)(==|=|!=)(.*)$/s

/** Parses a field selector over `metadata.name` and `metadata.namespace`. Throws 400 for any other field. */
export function fieldSelector(text: string): Selector {
  if (text.length > SELECTOR_MAX_CHARS) throw refused('field', `longer than ${SELECTOR_MAX_CHARS} characters`)
  const terms = text === '' ? [] : text.split(',').map(fieldTerm)
  return (object) => terms.every((term) => term(object))
}

function fieldTerm(term: string): Selector {
  const [, field, operator, value] = FIELD.exec(term) ?? []
  const wanted = operator !== '!='
  if (field === 'metadata.name') return ({ metadata }) => (metadata.name === value) === wanted
  if (field === 'metadata.namespace') return ({ metadata }) => (metadata.namespace === value) === wanted
  if (field === undefined) throw refused('field', `cannot read "${term}"`)
  throw new RestError(400, `field label not supported: ${field}`)
}

function refused(which: 'label' | 'field', why: string): RestError {
  return new RestError(400, `unable to parse the ${which} selector: ${why}`)
}
