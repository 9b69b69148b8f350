import java.util.*;
import java.util.regex.*;

// Prints what java.util.regex does, a line of JSON per pattern:
//   java Vectors.java SEED COUNT > vectors.jsonl
// The first lines are the patterns written below, the others random ones.
public class Vectors {
    static final String[] PATTERNS = {
        "(?<routedByValue>.*)", "U|User", "(.)(.*)", "(.*)-(.*)", "[[a-z]", "", "a", "abc", "a|b|", "(a|ab)(c|bcd)(d*)", "(a+|b)*",
        "public\\.outbox.*", "public.(outbox|events)", "^a", "a$", "^a$", "$", "(a$|b)c?", "(a|b$)", "a$b", "($)*", "$$",
        "a*?", "a+?b", "a??b", "a{2}", "a{2,}", "a{2,3}?", "a{0}", "a{,3}", "a{", "a{x}", "{", "}", "]", "a}", "a]", "a{1001}", "a{1000}", "(a{500}){500}",
        "a*+", "a++", "a?+", "a{2}+", "(?>a)", "(?=a)a", "(?!a)b", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?<n>a)\\k<n>", "(?<n>a)(?<n>b)", "(?<1>a)", "(?<n_1>a)", "(?<aB9>a)",
        "\\d+", "\\D", "\\w+", "\\W", "\\s", "\\S", "\\h", "\\H", "\\v", "\\V", "\\R", "\\X", "\\b", "\\B", "\\Aa", "a\\z", "a\\Z", "\\Ga",
        "\\p{Alpha}+", "\\P{Alpha}", "\\p{Lower}", "\\p{Upper}", "\\p{Punct}", "\\p{Graph}", "\\p{Print}", "\\p{Blank}", "\\p{Cntrl}", "\\p{XDigit}", "\\p{Space}", "\\p{ASCII}",
        "\\p{Digit}", "\\p{Alnum}", "\\p{L}", "\\pL", "\\p{IsLatin}", "\\p{InGreek}", "\\p{javaLowerCase}", "\\p{}", "\\p{Alpha", "\\p",
        "[abc]", "[^abc]", "[a-c]", "[]a]", "[^]a]", "[a-]", "[-a]", "[a-c-e]", "[--a]", "[a&b]", "[&]", "[a&]", "[&&a]", "[a&&]", "[a&&&&b]", "[a&&&b]",
        "[a-z&&[def]]", "[a-z&&[^bc]]", "[a-z&&[^m-p]]", "[a-z&&def]", "[a-z&&^d]", "[^a-z&&[def]]", "[a-f&&c-h&&e-z]", "[a-f&&[c-h]&&[e-z]]", "[a-f&&[c-h][x]]", "[a-z&&[a]b]", "[a-z&&b[c]]",
        "[a-f&&[c-h]&x]", "[a[b-d]]", "[a[^b]]", "[[a-c][x-z]]", "[a-[b]]", "[\\d-z]", "[a-\\d]", "[\\w&&[^\\d]]", "[\\p{Alpha}&&[^a]]", "[\\s\\S]", "[^\\s\\S]", "[\\v-z]", "[\\[\\]]", "[\\\\]", "[\\-a]", "[z-a]",
        "[a", "[", "[]", "[^]", "[[a]", "[\\b]", "[.]", "[$^]", "[a^]", "[|]", "[(]", "[#]", "[\\Q^]\\E]", "[\\Qa-z\\E]", "[a-\\Q]\\E]",
        "\\Qa.b\\E", "\\Qa.b", "\\Q\\E", "\\Q\\\\E", "\\Qab\\E*", "a\\Q+\\E+", "\\E", "\\\\Qa", "\\Q(\\E|b", "x\\Q1\\E",
        "\\0101", "\\07", "\\077", "\\0777", "\\0", "\\08", "\\x41", "\\x4", "\\x{1F600}", "\\x{110000}", "\\x{41", "\\u0041", "\\u00", "\\ud83d\\ude00", "\\ud83d", "\\cA", "\\c", "\\N{LATIN SMALL LETTER A}",
        "\\t\\n\\r\\f\\a\\e", "\\i", "\\_", "\\-", "\\.", "\\", "\\\u00e9", "\u00e9+", "\ud83d\ude00", "[\ud83d\ude00-\ud83d\ude02]", ".", "..", ".*", "(?s).*", "(?s:.)a", "(?i)abc", "(?i:a)b", "a(?i)b|c", "(a(?i)b)c", "(?-i)a", "(?i-s)a", "(?is)a.",
        "(?m)^a", "(?x)a b", "(?u)a", "(?d).", "(?U)\\w", "(?i", "(?", "(?P<n>a)", "(?#c)a", "(", ")", "(a", "a)", "()", "(|a)", "(a|)", "()*", "(a*)*", "(a*)+", "(|a)*", "(a?){2}", "(a*)?", "(?:a*)*", "^*", "*", "+a", "?", "a**", "a+*", "a{2}{3}", "a{2}*", "|", "||", "a||b",
        "(a|b)*c", "(?:(a)|b)*", "(?:(a)|(b)|c)+", "((a)|(b))+?c", "(a|ab)*?b", "((a|b)(c|d))*", "([a-z]+)\\.([a-z]+)", "(a)(b)?", "(a)|(b)", "(?:a|(b))c", "(a+)(a+)", "(a+?)(a*)", "(.*?)(\\d+)",
        "k", "[k-m]", "[^k]", "s", "\\x6b", "[\\x41-\\x5A]", "[@-\\[]", "\\W", "[^\\W]", "\u212a", "\u017f", "[^\u0000-\u007f]",
    };
    static final String[] REPLACEMENTS = {
        "x", "", "outbox.event.${routedByValue}", "$2-$1", "$0", "$1", "$11", "$12", "$2", "[$1][$2]", "\\$1", "\\\\", "\\", "$", "$x", "${", "${}", "${n", "${1}", "${n}", "${n_1}", "a\\b", "$01", "x$1y$0z", "\ud83d\ude00$1",
    };
    static final String[] ATOMS = {
        "a", "b", "c", "A", "B", "k", "1", ".", "-", "_", " ", "\\.", "\\d", "\\w", "\\W", "\\s", "\\S", "\\h", "\\v", "[abc]", "[^ab]", "[a-c]", "[^a-c]", "[a-z&&[^b]]", "[\\w&&[^a]]", "[a[c1]]", "[\\d_-]", "\\p{Alpha}", "\\P{Punct}", "\\p{Upper}",
        "\\x61", "\\u0062", "\\Qa.\\E", "\u00e9", "\ud83d\ude00", "[a-c&&b-d]", "[^\\s]", "\\n", "[\\n.]", "\\0141", "(?i)", "(?s)", "(?-i)",
    };
    static final String ALPHABET = "aabbccABk1.-_ \n\r\u0085\u2028\t\u000b\u00e9\u212a\u017f";
    static final String SOUP = "ab[]()^-&|*+?{}.,\\dwQEs:<>=!$1i";

    static Random random;

    static String pattern(int depth) {
        StringBuilder b = new StringBuilder();
        int alternatives = random.nextInt(4) == 0 ? 2 : 1;
        for (int i = 0; i < alternatives; i++) {
            if (i > 0) b.append('|');
            int items = random.nextInt(4) + (depth == 0 ? 1 : 0);
            for (int j = 0; j < items; j++) {
                int kind = random.nextInt(12);
                if (kind < 3 && depth < 3) {
                    b.append(new String[] { "(", "(?:", "(", "(?<n" + random.nextInt(90) + ">", "(?i:" }[random.nextInt(5)]).append(pattern(depth + 1)).append(')');
                } else if (kind == 3 && random.nextInt(4) == 0) {
                    b.append(new String[] { "^", "$", "\\z", "\\A" }[random.nextInt(4)]);
                } else {
                    b.append(ATOMS[random.nextInt(ATOMS.length)]);
                }
                if (random.nextInt(3) == 0) b.append(new String[] { "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}", "{0,2}?", "{0}" }[random.nextInt(11)]);
            }
        }
        return b.toString();
    }

    static String soup() {
        StringBuilder b = new StringBuilder();
        boolean cls = random.nextBoolean();
        if (cls) b.append('[');
        for (int i = random.nextInt(8); i >= 0; i--) b.append(SOUP.charAt(random.nextInt(cls ? 14 : SOUP.length())));
        if (cls) b.append(']');
        return b.toString();
    }

    static String input() {
        StringBuilder b = new StringBuilder();
        for (int i = random.nextInt(7); i > 0; i--) {
            if (random.nextInt(15) == 0) b.append("\ud83d\ude00");
            else b.append(ALPHABET.charAt(random.nextInt(ALPHABET.length())));
        }
        return b.toString();
    }

    static String quote(String s) {
        if (s == null) return "null";
        StringBuilder b = new StringBuilder("\"");
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c < 0x20 || c > 0x7e) b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }

    // {"p":pattern,"f":fold,"ok":compiles,"r":replacement,"c":[[input, matches, result of replaceFirst or null for an exception],…]}
    static void line(String p, boolean fold, String replacement, List<String> inputs) {
        Pattern compiled = null;
        try {
            compiled = Pattern.compile(p, fold ? Pattern.CASE_INSENSITIVE : 0);
            for (String s : inputs) compiled.matcher(s).matches(); // some throw only here
        } catch (RuntimeException e) {
            compiled = null;
        }
        StringBuilder b = new StringBuilder("{\"p\":" + quote(p) + ",\"f\":" + fold + ",\"ok\":" + (compiled != null) + ",\"r\":" + quote(replacement) + ",\"c\":[");
        if (compiled != null) {
            String separator = "";
            for (String s : inputs) {
                Matcher m = compiled.matcher(s);
                boolean matches = m.matches();
                String replaced = null;
                try {
                    replaced = m.replaceFirst(replacement);
                } catch (RuntimeException e) {
                }
                b.append(separator).append("[" + quote(s) + "," + matches + "," + quote(replaced) + "]");
                separator = ",";
            }
        }
        System.out.println(b.append("]}"));
    }

    static List<String> inputs(String... more) {
        List<String> list = new ArrayList<>(Arrays.asList(more));
        for (int i = 0; i < 5; i++) list.add(input());
        return list;
    }

    public static void main(String[] args) {
        random = new Random(Long.parseLong(args[0]));
        for (String p : PATTERNS) {
            line(p, false, "[$0]", inputs("a", "ab", "User", "eu-orders", "public.outboxevent", "a\n", "aa", "k", "]", "Z"));
            line(p, true, "<$0>", inputs("A", "aB", "PUBLIC.Outbox", "\u212a", "\u017f", "S"));
        }
        for (String r : REPLACEMENTS) {
            line("(?<routedByValue>.*)", false, r, inputs("User"));
            line("(?<n>a)(b)?.*", false, r, inputs("ab", "ac"));
            line("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)", false, r, inputs("abcdefghijkl"));
        }
        int count = Integer.parseInt(args[1]);
        for (int i = 0; i < count; i++) {
            String p = random.nextInt(5) == 0 ? soup() : pattern(0);
            String r = "[$0]";
            int groups = 0;
            try {
                groups = Pattern.compile(p).matcher("").groupCount();
            } catch (RuntimeException e) {
            }
            for (int g = 1; g <= groups; g++) r += "<$" + g + ">";
            line(p, random.nextInt(4) == 0, r, inputs());
        }
    }
}
