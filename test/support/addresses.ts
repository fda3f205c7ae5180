/** The addresses and spellings that the address gate is tested with. */

/** From the IANA special-purpose registries and the clouds' documentation: first and last of every range. */
export const refusedIPv4 = [
  ...['0.0.0.0', '0.255.255.255', '10.0.0.0', '10.255.255.255', '100.64.0.0', '100.127.255.255'],
  ...['127.0.0.0', '127.0.0.1', '127.255.255.255', '169.254.0.0', '169.254.169.254', '169.254.255.255'],
  ...['172.16.0.0', '172.31.255.255', '192.0.0.0', '192.0.0.192', '192.0.0.255', '192.0.2.0', '192.0.2.255'],
  ...['192.31.196.0', '192.52.193.0', '192.88.99.0', '192.88.99.255', '192.168.0.0', '192.168.255.255'],
  ...['192.175.48.0', '198.18.0.0', '198.19.255.255', '198.51.100.0', '198.51.100.255', '203.0.113.0'],
  ...['203.0.113.255', '224.0.0.0', '239.255.255.255', '240.0.0.0', '255.255.255.254', '255.255.255.255'],
  ...['168.63.129.16', '100.100.100.200'],
];

export const publicIPv4 = [
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ...['128.0.0.0', '168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
  ...[
    '172.32.0.0',
    '192.0.1.0',
    '192.0.3.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
  ],
  ...['203.0.112.255', '203.0.114.0', '223.255.255.255', '41.59.0.1'],
];

export const refusedIPv6 = [
  ...[
    '::',
    '::1',
    '::2',
    '::7f00:1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '::ffff:0:7f00:1',
  ],
  ...[
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::a00:1',
    '64:ff9b:1:ffff::1',
  ],
  ...['100::1', '100:0:0:1::1', '200::1', '400::1', '2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ...['2001:1::1', '2001:2::1', '2001:3::1', '2001:4:112::1', '2001:10::1', '2001:20::1', '2001:30::1'],
  ...[
    '2001:1ff:ffff::1',
    '2001:db8::1',
    '2001:db8:ffff::1',
    '2002:7f00:1::',
    '2002:808:808::1',
    '2620:4f:8000::1',
  ],
  ...['3fff::1', '3fff:fff:ffff::1', '4000::1', '5f00::1', '8000::1', 'c000::1', 'e000::1', 'f000::1'],
  ...['fc00::1', 'fd00:ec2::254', 'fd20:ce::254', 'fdff::1', 'fe80::1', 'fe80::1%eth0', 'febf::1', 'fec0::1'],
  ...['feff::1', 'ff00::1', 'ff02::1', 'ffff:ffff::1', 'fe80::5efe:10.0.0.1', '::5efe:7f00:1'],
  ...['2a00:1450:4001:810:0:5efe:7f00:1', '2a00:1450:4001:810:200:5efe:a00:1', '2606:4700::1%eth0'],
];

export const publicIPv6 = [
  ...[
    '2001:200::1',
    '2001:4860:4860::8888',
    '2001:db7:ffff::1',
    '2001:db9::1',
    '2003::1',
    '2606:4700:4700::1111',
  ],
  ...['2a00:1450:4001:810::200e', '2c0f:fe38::1', '3ffe:ffff::1', '2a00:1450:4001:810:100:5efe:808:808'],
];

export const notAddresses = [
  '',
  'localhost',
  '127.1',
  '0x7f.0.0.1',
  '010.0.0.1',
  '2130706433',
  '1.2.3',
  '1.2.3.4.5',
  '[::1]',
];

export function toBits(ip: string): number {
  return ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function toIPv4(bits: number): string {
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
}

/** One IPv4 address in every form in which IPv6 carries it; `any` fills what is free. */
export function spellings(bits: number, any: number): string[] {
  const high = (bits >>> 16).toString(16);
  const low = (bits & 0xffff).toString(16);
  const hex = `${high}:${low}`;
  const free = any.toString(16);
  return [
    `::ffff:${toIPv4(bits)}`,
    `::ffff:${hex}`,
    `0:0:0:0:0:ffff:${hex}`,
    `::${hex}`,
    `::${toIPv4(bits)}`,
    `::ffff:0:${hex}`,
    `2002:${hex}::`,
    `2002:${hex}:${free}::${free}`,
    `64:ff9b::${hex}`,
    `64:ff9b::${toIPv4(bits)}`,
    `64:ff9b:1::${hex}`,
    `64:ff9b:1:${free}:${free}::${hex}`,
    // RFC 6052 with a /48 prefix: the address lies around bit 64, which stays zero.
    `64:ff9b:1:${high}:${((bits >>> 8) & 0xff).toString(16)}:${((bits & 0xff) << 8).toString(16)}::`,
    `fe80::5efe:${hex}`,
    `fe80::200:5efe:${hex}`,
    `2a00:1450:4001:${free}:0:5efe:${hex}`,
    `2a00:1450:4001:${free}:200:5efe:${hex}`,
    // Teredo carries it inverted.
    `2001:0:4136:e378:8000:${free}:${((~bits >>> 16) & 0xffff).toString(16)}:${(~bits & 0xffff).toString(16)}`,
  ];
}

/** Spellings of addresses inside; each is refused in either mode, with https. */
export const blockedHosts = [
  ...[
    '127.0.0.1',
    '127.0.0.1.',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f.1',
    '0x7f000001',
    '0177.0.0.1',
    '017700000001',
  ],
  ...[
    '0',
    '0.0.0.0',
    '0x0',
    '00000000000',
    '127.0.0.0x1',
    '0x7F.0X0.0.1',
    '%31%32%37.0.0.1',
    '127%2e0%2e0%2e1',
  ],
  ...['①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1', '127．0．0．1', '127｡0｡0｡1', '10.0.0.1', '192.168.1.1'],
  ...['172.16.0.1', '169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '168.63.129.16'],
  ...[
    '100.64.0.1',
    '[::]',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::127.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
  ],
  ...['[::ffff:0:127.0.0.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[fe80::1]'],
  ...[
    '[fd00:ec2::254]',
    '[fe80::5efe:7f00:1]',
    '[2a00:1450::5efe:127.0.0.1]',
    '[2001:db8::1]',
    '[FF02::1]',
    '[4000::1]',
  ],
];

/** Names that are none of the public internet, or no names at all. */
export const insideNames = [
  ...[
    'localhost',
    'LOCALHOST',
    'localhost.',
    'localhost.localdomain',
    'a.localhost',
    'intranet',
    'kubernetes',
  ],
  ...['redis', 'metadata', 'metadata.google.internal', 'printer.local', 'a.b.LOCAL', 'api.internal', 'x.svc'],
  ...[
    'web.default.svc',
    'web.default.svc.cluster.local',
    'router.lan',
    'nas.home',
    'nas.home.arpa',
    'mail.corp',
  ],
  ...[
    'db.intranet',
    'db.private',
    'x.onion',
    'x.invalid',
    'example.com.',
    'example.com..',
    'example..com',
    '.com',
  ],
  ...['-.com', 'a-.example.com', '-a.example.com', 'a.b', `${'a'.repeat(64)}.com`, `${'a.'.repeat(126)}com`],
  ...['ｌｏｃａｌｈｏｓｔ', 'printer.ｌｏｃａｌ', 'local%68ost', 'example.com%2e'],
];
