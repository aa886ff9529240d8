import { type ConfigBlock, key, type Rule } from '@plat/config'
import Type from 'typebox'

const MIB = 1024 * 1024

const CONTENT_TYPES = [
  'text/html',
  'text/plain',
  'text/markdown',
  'text/csv',
  'text/xml',
  'application/xhtml+xml',
  'application/xml',
  'application/json',
]

const domains = Type.Object({
  allowedDomains: key.texts('Domains that may be read.'),
  deniedDomains: key.texts('Domains that may not.'),
})

const search = key.group(
  {
    backend: key.choice(['none', 'searxng', 'opensearch'], 'none', 'What answers searches.'),
    url: key.url('Where it stands.'),
    index: key.text('Required for `opensearch`.'),
    fields: key.texts('Fields that are searched.', ['title^2', 'content']),
    urlField: key.text('Field of the address.', 'url'),
    titleField: key.text('Field of the title.', 'title'),
    snippetField: key.text('Field of the text.', 'content'),
    authHeaderFile: key.file('Value of its `Authorization` header.'),
    caFile: key.file('Its authorities.'),
    maxResults: key.whole('Results of one search.', 10, 1, 50),
  },
  'Web search.',
)

const searchIsWhole: Rule = ({ search: own }) => {
  if (typeof own !== 'object' || own === null || !('backend' in own) || own.backend !== 'opensearch') return []
  if ('index' in own && own.index !== '') return []
  return [{ path: 'web.search.index', message: 'is required for opensearch', severity: 'error' }]
}

/** `web` (document 3): the built-in web tool. */
export const webBlock = {
  path: 'web',
  feature: 'web',
  built: false,
  schema: Type.Object({
    enabled: key.flag('The built-in web tool.'),
    allowedDomains: key.texts('Domains that may be read; the strictest level wins.'),
    deniedDomains: key.texts('Domains that may not.'),
    namespaces: key.map(domains, 'The same by namespace.'),
    defaultAllow: key.flag('Read what no list names.'),
    allowedPorts: Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), {
      default: [80, 443],
      description: 'Ports.',
    }),
    allowedCIDRs: key.texts('Exceptions to the blocked address ranges.'),
    allowIPLiterals: key.flag('URLs may name addresses.'),
    maxBytes: key.whole('Bytes of one page.', 2 * MIB, 1, 32 * MIB),
    timeoutSeconds: key.seconds('Time for one page.', 15),
    maxRedirects: key.whole('Redirects that are followed.', 5, 0, 20),
    contentTypes: key.texts('What may be read.', CONTENT_TYPES),
    respectRobots: key.flag('Heed robots.txt.'),
    userAgent: key.text('Header of every request.', 'plat-web/1.0 (+governed fetch)'),
    taintLabels: key.texts('Taints of everything that was read.', ['untrusted-input']),
    search,
  }),
  rules: [searchIsWhole],
} satisfies ConfigBlock
