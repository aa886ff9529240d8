/** @table Numbers issued by states to people and companies. Where a check passes too many other numbers, a word must precede. */
import { isDate, isVaried, luhn, mod11to2, mod11to10, remainder, verhoeff, weighted } from './checks.ts'
import { personal } from './detector.ts'
import { shaped } from './shape.ts'

const DNI_LETTERS = 'TRWAGMYFPDXBNJZSQVHLCKE'
const HETU_LETTERS = '0123456789ABCDEFHJKLMNPRSTUVWXY'
const CURP_ORDER = '0123456789ABCDEFGHIJKLMN_OPQRSTUVWXYZ'

const isDni = (text: string) => DNI_LETTERS[Number(text.slice(0, 8)) % 23] === text[8]

/** Values of characters at odd positions of an Italian code; digits count as the letters from A on. */
const CODICE_ODD = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]

function isCodiceFiscale(text: string): boolean {
  if (!/^[A-Z]{6}\d{2}[ABCDEHLMPRST](?:0[1-9]|[12]\d|3[01]|4[1-9]|[56]\d|7[01])[A-Z]\d{3}[A-Z]$/.test(text))
    return false
  let sum = 0
  for (let at = 0; at < 15; at++) {
    const code = text.charCodeAt(at)
    const value = code >= 0x41 ? code - 0x41 : code - 0x30
    sum += at % 2 === 0 ? (CODICE_ODD[value] ?? 0) : value
  }
  return sum % 26 === text.charCodeAt(15) - 0x41
}

function isCurp(text: string): boolean {
  if (!/^[A-Z][AEIOUX][A-Z]{2}\d{6}[HMX][A-Z]{5}[A-Z\d]\d$/.test(text) || !isDate(text.slice(6, 8), text.slice(8, 10)))
    return false
  let sum = 0
  // The register has an additional N between N and O.
  for (let at = 0; at < 17; at++) sum += CURP_ORDER.indexOf(text[at] ?? '') * (18 - at)
  return (10 - (sum % 10)) % 10 === Number(text[17])
}

function isHetu(text: string): boolean {
  const digits = text.replace(/^(\d{6})[A-Z]/, '$1')
  const number = digits.slice(0, 9)
  if (!/^\d{9}$/.test(number) || digits.length !== 10 || !isDate(number.slice(2, 4), number.slice(0, 2))) return false
  return HETU_LETTERS[Number(number) % 31] === digits[9]
}

function isNir(number: string): boolean {
  const month = Number(number.slice(3, 5))
  const isPossible = /^[12]/.test(number) && ((month >= 1 && month <= 12) || (month >= 20 && month <= 42))
  return isPossible && 97 - remainder(number.slice(0, 13), 97) === Number(number.slice(13))
}

function isFodselsnummer(number: string): boolean {
  const day = Number(number.slice(0, 2))
  const date = isDate(number.slice(2, 4), String(day > 40 ? day - 40 : day))
  const first = weighted(number, [3, 7, 6, 1, 8, 9, 4, 5, 2, 1]) % 11
  const second = weighted(number, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11
  return date && first === 0 && second === 0
}

function isRodneCislo(number: string): boolean {
  const month = Number(number.slice(2, 4)) % 50
  return isDate(String(month > 20 ? month - 20 : month), number.slice(4, 6)) && remainder(number, 11) === 0
}

function isRijksregisternummer(number: string): boolean {
  const [body, check] = [number.slice(0, 9), Number(number.slice(9))]
  const isPossible = Number(number.slice(2, 4)) <= 12 && Number(number.slice(4, 6)) <= 31 && isVaried(number)
  return isPossible && (97 - remainder(body, 97) === check || 97 - remainder(`2${body}`, 97) === check)
}

function isPesel(number: string): boolean {
  const month = Number(number.slice(2, 4)) % 20
  return isDate(String(month), number.slice(4, 6)) && weighted(number, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0
}

/** Of the first ten digits one occurs two or three times, and all others at most once. */
function isSteuerId(number: string): boolean {
  if (number.startsWith('0') || !mod11to10(number)) return false
  const counts = [...'0123456789'].map((digit) => number.slice(0, 10).split(digit).length - 1)
  const repeated = counts.filter((count) => count > 1)
  return repeated.length === 1 && (repeated[0] ?? 0) <= 3
}

function isPersonnummer(number: string): boolean {
  const day = Number(number.slice(4, 6))
  return isDate(number.slice(2, 4), String(day > 60 ? day - 60 : day)) && luhn(number)
}

function isBsn(number: string): boolean {
  return isVaried(number) && weighted(number, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0
}

function isAhv(number: string): boolean {
  return number.startsWith('756') && weighted(number, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]) % 10 === 0
}

function isCpf(number: string): boolean {
  const first = ((weighted(number, [10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10) % 11) % 10
  const second = ((weighted(number, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10) % 11) % 10
  return isVaried(number) && first === Number(number[9]) && second === Number(number[10])
}

function isCnpj(number: string): boolean {
  const check = (sum: number) => (sum % 11 < 2 ? 0 : 11 - (sum % 11))
  const first = check(weighted(number, [5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]))
  const second = check(weighted(number, [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]))
  return isVaried(number) && first === Number(number[12]) && second === Number(number[13])
}

function isNhs(number: string): boolean {
  return isVaried(number) && weighted(number, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0
}

function isResidentId(text: string): boolean {
  const born = /^[1-9]\d{5}(?:19|20)\d{2}(\d{2})(\d{2})\d{3}[\dX]$/.exec(text)
  return born !== null && isDate(born[1] ?? '', born[2] ?? '') && mod11to2(text)
}

function isTckn(number: string): boolean {
  const odd = weighted(number, [1, 0, 1, 0, 1, 0, 1, 0, 1])
  const even = weighted(number, [0, 1, 0, 1, 0, 1, 0, 1])
  const sum = weighted(number, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
  return (
    /^[1-9]/.test(number) &&
    (((odd * 7 - even) % 10) + 10) % 10 === Number(number[9]) &&
    sum % 10 === Number(number[10])
  )
}

function isNric(text: string): boolean {
  const sum = weighted(text.slice(1, 8), [2, 7, 6, 5, 4, 3, 2])
  if (/^[ST]/.test(text)) return 'JZIHGFEDCBA'[(sum + (text.startsWith('T') ? 4 : 0)) % 11] === text[8]
  return /^[FG]/.test(text) && 'XWUTRQPNMLK'[(sum + (text.startsWith('G') ? 4 : 0)) % 11] === text[8]
}

function isCuit(number: string): boolean {
  const sum = weighted(number, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2])
  return /^(?:2[0347]|3[034])/.test(number) && (11 - (sum % 11)) % 11 === Number(number[10])
}

function isRut(text: string): boolean {
  const sum = weighted(text.slice(0, 8), [3, 2, 7, 6, 5, 4, 3, 2])
  return isVaried(text) && '0123456789K0'[11 - (sum % 11)] === text[8]
}

export const nationalRows = [
  personal(
    'ar_cuit',
    'Argentina: CUIT and CUIL, with hyphens',
    'check digit modulo 11, known prefixes',
    shaped({ shapes: ['dd-dddddddd-d'], is: isCuit }),
  ),
  personal(
    'au_abn',
    'Australia: business numbers',
    'modulo 89, with `ABN` before',
    shaped({
      shapes: ['ddddddddddd', 'dd ddd ddd ddd'],
      near: /\babn\b/i,
      is: (number) => (weighted(number, [10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]) - 10) % 89 === 0,
    }),
  ),
  personal(
    'au_tfn',
    'Australia: tax file numbers',
    'modulo 11, with `TFN` or `tax file` before',
    shaped({
      shapes: ['ddddddddd', 'ddd ddd ddd'],
      near: /\btfn\b|tax.?file/i,
      is: (number) => isVaried(number) && weighted(number, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0,
    }),
  ),
  personal(
    'be_nrn',
    'Belgium: national register numbers',
    'modulo 97, date of birth',
    shaped({ shapes: ['ddddddddddd', 'dd.dd.dd-ddd.dd'], is: isRijksregisternummer }),
  ),
  personal(
    'br_cnpj',
    'Brazil: CNPJ, written with its punctuation',
    'two check digits modulo 11',
    shaped({ shapes: ['dd.ddd.ddd/dddd-dd'], is: isCnpj }),
  ),
  personal(
    'br_cpf',
    'Brazil: CPF, written with its punctuation',
    'two check digits modulo 11',
    shaped({ shapes: ['ddd.ddd.ddd-dd'], is: isCpf }),
  ),
  personal(
    'ca_sin',
    'Canada: social insurance numbers',
    "Luhn's check digit, with `SIN`, `NAS` or `social insurance` before",
    shaped({
      shapes: ['ddddddddd', 'ddd ddd ddd', 'ddd-ddd-ddd'],
      near: /\bsin\b|\bnas\b|social.?insurance/i,
      is: (number) => /^[1-79]/.test(number) && isVaried(number) && luhn(number),
    }),
  ),
  personal(
    'ch_ahv',
    'Switzerland: AHV numbers',
    'check digit of EAN-13, prefix 756',
    shaped({ shapes: ['ddddddddddddd', 'ddd.dddd.dddd.dd'], is: isAhv }),
  ),
  personal(
    'cl_rut',
    'Chile: RUT, written with its punctuation',
    'check digit modulo 11',
    shaped({ shapes: ['dd.ddd.ddd-x'], is: isRut }),
  ),
  personal(
    'cn_resident_id',
    'China: resident identity numbers',
    'ISO 7064 MOD 11-2, date of birth',
    shaped({ shapes: ['dddddddddddddddddx'], is: isResidentId }),
  ),
  personal(
    'cz_rodne_cislo',
    'Czechia and Slovakia: birth numbers, with a slash',
    'modulo 11, date of birth',
    shaped({ shapes: ['dddddd/dddd'], is: isRodneCislo }),
  ),
  personal(
    'de_tax_id',
    'Germany: tax identification numbers',
    'ISO 7064 MOD 11,10 and how often digits may stand, with a word such as `Steuer-ID` before',
    shaped({
      shapes: ['ddddddddddd', 'dd ddd ddd ddd'],
      near: /steuer|\bidnr\b|\btax|\btin\b/i,
      is: isSteuerId,
    }),
  ),
  personal(
    'es_dni',
    'Spain: DNI',
    'check letter modulo 23',
    shaped({ shapes: ['ddddddddL', 'dddddddd-L'], is: isDni }),
  ),
  personal(
    'es_nie',
    'Spain: NIE',
    'check letter modulo 23',
    shaped({
      shapes: ['LdddddddL'],
      is: (text) => 'XYZ'.includes(text[0] ?? '-') && isDni(`${'XYZ'.indexOf(text[0] ?? '')}${text.slice(1)}`),
    }),
  ),
  personal(
    'fi_hetu',
    'Finland: personal identity codes',
    'check character modulo 31, date of birth',
    shaped({ shapes: ['dddddd-dddx', 'dddddd+dddx', 'ddddddLdddx'], is: isHetu }),
  ),
  personal(
    'fr_nir',
    'France: social security numbers',
    'key modulo 97, month of birth',
    shaped({ shapes: ['ddddddddddddddd', 'd dd dd dd ddd ddd dd'], is: isNir }),
  ),
  personal(
    'in_aadhaar',
    'India: Aadhaar numbers',
    "Verhoeff's check digit, with `Aadhaar` or `UID` before",
    shaped({
      shapes: ['dddddddddddd', 'dddd dddd dddd'],
      near: /aadh?aa?r|\buid(?:ai)?\b/i,
      is: (number) => /^[2-9]/.test(number) && verhoeff(number),
    }),
  ),
  personal(
    'in_pan',
    'India: permanent account numbers',
    'kind of holder in the fourth place, with `PAN` or `permanent account` before',
    shaped({
      shapes: ['LLLLLddddL'],
      near: /\bpan\b|permanent.?account/i,
      is: (text) => /^[A-Z]{3}[ABCFGHLJPT]/.test(text),
    }),
  ),
  personal(
    'it_codice_fiscale',
    'Italy: fiscal codes',
    'check letter modulo 26, month and day of birth',
    shaped({ shapes: ['LLLLLLddLddLdddL'], is: isCodiceFiscale }),
  ),
  personal(
    'mx_curp',
    'Mexico: CURP',
    'check digit, date of birth',
    shaped({ shapes: ['LLLLddddddLLLLLLxd'], is: isCurp }),
  ),
  personal(
    'nl_bsn',
    'Netherlands: citizen service numbers',
    'modulo 11, with `BSN` or `burgerservice` before',
    shaped({ shapes: ['ddddddddd', 'dddd.dd.ddd'], near: /\bbsn\b|burgerservice|sofi/i, is: isBsn }),
  ),
  personal(
    'no_fnr',
    'Norway: birth numbers',
    'two check digits modulo 11, date of birth',
    shaped({ shapes: ['ddddddddddd', 'dddddd ddddd'], is: isFodselsnummer }),
  ),
  personal(
    'pl_pesel',
    'Poland: PESEL',
    'check digit, date of birth, with `PESEL` before',
    shaped({ shapes: ['ddddddddddd'], near: /pesel/i, is: isPesel }),
  ),
  personal(
    'pt_nif',
    'Portugal: tax numbers',
    'check digit modulo 11, with `NIF` or `contribuinte` before',
    shaped({
      shapes: ['ddddddddd', 'ddd ddd ddd'],
      near: /\bnif\b|contribuinte/i,
      is: (number) =>
        isVaried(number) && ((11 - (weighted(number, [9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 11) % 10 === Number(number[8]),
    }),
  ),
  personal(
    'se_personnummer',
    'Sweden: personal identity numbers, with a hyphen',
    "Luhn's check digit, date of birth",
    shaped({ shapes: ['dddddd-dddd', 'dddddd+dddd'], is: isPersonnummer }),
  ),
  personal(
    'sg_nric',
    'Singapore: NRIC and FIN',
    'check letter modulo 11',
    shaped({ shapes: ['LdddddddL'], is: isNric }),
  ),
  personal(
    'tr_tckn',
    'Türkiye: identity numbers',
    'two check digits, with `TC` or `kimlik` before',
    shaped({ shapes: ['ddddddddddd'], near: /kimlik|tckn|\bt\.?c\.?\b/i, is: isTckn }),
  ),
  personal(
    'uk_nhs',
    'United Kingdom: NHS numbers',
    'modulo 11, with `NHS` before',
    shaped({ shapes: ['dddddddddd', 'ddd ddd dddd', 'ddd-ddd-dddd'], near: /\bnhs\b/i, is: isNhs }),
  ),
  personal(
    'uk_nino',
    'United Kingdom: national insurance numbers',
    'prefixes that are given out, with `NI`, `NINO` or `national insurance` before',
    shaped({
      shapes: ['LLddddddL'],
      near: /\bni(?:no)?\b|national.?insurance/i,
      is: (text) => /^(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]$/.test(text),
    }),
  ),
  personal(
    'za_id',
    'South Africa: identity numbers',
    "Luhn's check digit, date of birth, citizenship",
    shaped({
      shapes: ['ddddddddddddd'],
      is: (number) =>
        isDate(number.slice(2, 4), number.slice(4, 6)) && /^\d{10}[01][89]\d$/.test(number) && luhn(number),
    }),
  ),
] as const
